"""`contexture notify serve`: a broker notifies, the inbox has it, and no client without the token is accepted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from builders.notifying import HEADERS, body, entity
from contexture.cli import notify
from contexture.errors import ConfigurationError
from contexture.storage.home import Home

pytestmark = pytest.mark.slow

CARS = """
name: cars
source: {kind: ngsi, connection: broker, service: vehicles, service_path: /4wheels, types: [car], mode: notifications}
"""
BODY = body(entity(1, speed=1))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cars.yaml"
    path.write_text(CARS)
    return path


@contextmanager
def serving(file: Path, *options: str, **variables: str) -> Iterator[str]:
    """The address at which a process of its own takes notifications of the cars."""
    environment = {**os.environ, "CONTEXTURE_HOME": str(file.parent / "home"), **variables}
    command = [sys.executable, "-m", "contexture.cli", "notify", "serve", str(file), "--port", "0", *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            name, url = process.stdout.readline().split(": ")
            assert name == "cars"
            yield url.strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=90)


def post(url: str, token: str | None = None) -> int:
    shown = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.post(url, content=BODY, headers={**HEADERS, **shown}).status_code


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_its_exit_code_says_which_signal_stopped_it(file: Path, signal_number: signal.Signals, code: int):
    command = [sys.executable, "-m", "contexture.cli", "notify", "serve", str(file), "--port", "0"]
    environment = {**os.environ, "CONTEXTURE_HOME": str(file.parent / "home")}
    with subprocess.Popen(
        [*command, "--without-credentials"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(": ")[1].strip()
        assert post(url) == 200
        process.send_signal(signal_number)
        assert process.wait(timeout=90) == code
    assert len(kept(file)) == 1


def kept(file: Path) -> list[bytes]:
    reader = Home(str(file.parent / "home")).publication("cars").inbox
    return [entry.body for entry in reader.entries(reader.files())]


def test_a_notification_with_the_token_is_kept_for_the_next_run(file: Path) -> None:
    with serving(file, CONTEXTURE_NOTIFY_TOKEN="s3cret") as url:
        assert url.startswith("http://127.0.0.1:")
        assert [post(url), post(url, "wrong"), post(url, "s3cret"), post(f"{url}2", "s3cret")] == [401, 401, 200, 404]
    assert kept(file) == [BODY]


def test_who_is_on_this_machine_needs_no_token_when_that_is_said(file: Path) -> None:
    with serving(file, "--without-credentials", CONTEXTURE_NOTIFY_TOKEN="") as url:
        assert post(url) == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "notifiers have to send a token, and none is set"),
        (["--without-credentials", "--host", "0.0.0.0"], "others can reach 0.0.0.0"),
    ],
)
def test_it_refuses_to_serve_everybody(
    file: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.delenv("CONTEXTURE_NOTIFY_TOKEN", raising=False)
    result = CliRunner().invoke(notify.app, ["serve", str(file), *options])
    assert isinstance(result.exception, ConfigurationError)
    assert said in str(result.exception)


def test_only_publications_in_the_mode_are_notified(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTURE_NOTIFY_TOKEN", "s3cret")
    file.write_text(CARS.replace("notifications", "changes"))
    result = CliRunner().invoke(notify.app, ["serve", str(file)])
    assert isinstance(result.exception, ConfigurationError)
    assert "receives notifications" in str(result.exception)


def test_a_token_is_never_an_argument() -> None:
    shown = CliRunner().invoke(notify.app, ["serve", "--help"]).output
    assert "--token-file" in shown
    assert "--token " not in shown
