"""One project of Docker Compose with its own name, free ports and a made-up .env."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from contexture.errors import RetriableError
from contexture_sandbox.ports import LOOPBACK, free_ports
from contexture_sandbox.stack import project_folder
from tools.images.building import has_image
from tools.images.recipes import APPLICATION, BASE, recipes

PORTS = ("AIRFLOW_PORT", "SPARK_PORT", "ORION_PORT", "REGISTRY_PORT", "KAFKA_1_PORT", "KAFKA_2_PORT", "KAFKA_3_PORT")
HEXADECIMAL = (
    *("AIRFLOW_JWT_SECRET", "AIRFLOW_SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD", "OBJECT_STORE_SECRET_KEY"),
    *("NOTIFY_SECRET", "AIRFLOW_UI_PASSWORD"),
)
UP_SECONDS = 1200


def find_obstacle(file: Path | None = None) -> str | None:
    """Returns why the file cannot be started here; None if it can."""
    if _quiet(["docker", "info"]) is not None:
        return "no container engine answers `docker info`"
    if _quiet(["docker", "compose", "version"]) is not None:
        return "Docker has no plugin `compose`"
    path = file or project_folder() / "docker-compose.yaml"
    services = yaml.safe_load(path.read_text())["services"].values()
    bases = {"python:3.11-slim-bookworm", *(each["image"] for each in services if "profiles" not in each)}
    # Test servers take the place of the sources once the application's own image is built.
    later = {APPLICATION} | ({each.tag for each in recipes() if each.base == APPLICATION} if has_image(BASE) else set())
    missing = [each for each in sorted(bases - later) if not is_available(each)]
    return f"images are neither here nor can be pulled: {', '.join(missing)}" if missing else None


def is_available(image: str) -> bool:
    """Returns whether an image is here under its tag, or can be pulled."""
    return _quiet(["docker", "image", "inspect", image]) is None or _quiet(["docker", "pull", image]) is None


def _quiet(words: Sequence[str]) -> str | None:
    """Runs a command; returns the end of its output if it failed."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=UP_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr or done.stdout)[-2000:] if done.returncode else None


def make_environment(**changes: str) -> dict[str, str]:
    """Makes the content of a .env: new secrets, free ports, and what is given."""
    values = dict.fromkeys(HEXADECIMAL, "") | {name: secrets.token_hex(16) for name in HEXADECIMAL}
    values["AIRFLOW_FERNET_KEY"] = base64.urlsafe_b64encode(os.urandom(32)).decode()
    values |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    return {**values, "AIRFLOW_UI_USER": "admin", **changes}


class ComposeProject:
    """The services of docker-compose.yaml under a name of their own; a context manager that removes all of it.

    Args:
        folder: where its .env is.
        environment: what that file says.
        progress: gets a sentence for each step.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], progress: Callable[[str], None]) -> None:
        self.name = f"contexture-test-{secrets.token_hex(3)}"
        self.environment = dict(environment)
        self._file = project_folder() / "docker-compose.yaml"
        self._env_file = folder / f"{self.name}.env"
        self._env_file.write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
        self._env_file.chmod(0o600)
        self._progress = progress

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._progress("the last lines of the services:")
            self._progress(self.compose("logs", "--tail", "20", check=False)[-6000:])
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "30", check=False)
        self._env_file.unlink(missing_ok=True)

    @property
    def brokers(self) -> str:
        """The brokers as this machine reaches them."""
        return ",".join(f"{LOOPBACK}:{self.environment[f'KAFKA_{number}_PORT']}" for number in (1, 2, 3))

    def url(self, port: str) -> str:
        """Returns the address of a published port, by its variable."""
        return f"http://{LOOPBACK}:{self.environment[port]}"

    def compose(self, *words: str, check: bool = True, seconds: float = UP_SECONDS) -> str:
        """Runs `docker compose`; returns its output.

        Raises:
            RetriableError: it failed, and `check` is true.
        """
        command = ["docker", "compose", "--project-name", self.name, "--env-file", str(self._env_file)]
        done = subprocess.run(
            [*command, "--file", str(self._file), "--progress", "plain", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        if check and done.returncode:
            raise RetriableError(
                f"`docker compose {' '.join(words)}` failed: {(done.stderr or done.stdout)[-1500:].strip()}",
                next_step="read what it says, and the logs of the services",
            )
        return done.stdout

    def up(self) -> None:
        """Starts everything, and waits until all of it is healthy."""
        self.compose("up", "--detach", "--wait", "--wait-timeout", str(UP_SECONDS - 60))

    def services(self) -> list[dict[str, Any]]:
        """Returns what Compose knows of its containers."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def containers(self, service: str) -> list[str]:
        """Returns the names of a service's containers."""
        return sorted(each["Name"] for each in self.services() if each["Service"] == service)

    def run_inside(self, service: str, *words: str) -> str:
        """Runs a command in a service's container; returns its output."""
        return self.compose("exec", "--no-TTY", service, *words)
