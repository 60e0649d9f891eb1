"""`python -m tools.compose`: starts docker-compose.yaml as documented, uses and disturbs it, and once more with s3."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from contexture.errors import ContextureError
from tools.compose.project import ComposeProject, find_obstacle, is_available, make_environment
from tools.compose.scenario import ComposeScenario, Findings
from tools.images.building import build_images

STORE = {"COMPOSE_PROFILES": "s3", "CONTEXTURE_HOME": "s3://contexture/home"}
STORE_IMAGE = "chrislusf/seaweedfs:3.97"
SKIPPED = 3


def main(
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets everything that was found.")] = None,
    with_store: Annotated[bool, typer.Option(help="Also once with the home on the object store.")] = True,
) -> None:
    """Builds, starts, uses, kills, and starts again.

    Exit codes: 0 all was right; 1 something was not; 3 nothing was started, because an engine or images are missing.
    """
    obstacle = find_obstacle()
    if obstacle is not None:
        typer.echo(f"not started: {obstacle}", err=True)
        raise typer.Exit(SKIPPED)
    began = time.monotonic()
    findings, stored = Findings(), Findings()

    def say(sentence: str) -> None:
        typer.echo(f"{time.monotonic() - began:6.0f} s  {sentence}")

    with tempfile.TemporaryDirectory() as folder:
        try:
            with ComposeProject(Path(folder), make_environment(), say) as project:
                use(ComposeScenario(project, findings, say), project)
            if with_store and not is_available(STORE_IMAGE):
                say(f"not run with s3: {STORE_IMAGE} is neither here nor can be pulled")
            elif with_store:
                with ComposeProject(Path(folder), make_environment(**STORE), say) as project:
                    use_store(ComposeScenario(project, stored, say), project)
        except ContextureError as error:
            findings.problems.append(str(error))
            say(f"error: {error}")
    if json_file:
        json_file.write_text(json.dumps({"volume": asdict(findings), "s3": asdict(stored)}, indent=1))
    problems = [*findings.problems, *stored.problems]
    say(f"{len(problems)} problems" if problems else "all was right")
    raise typer.Exit(1 if problems else 0)


def use(scenario: ComposeScenario, project: ComposeProject) -> None:
    """Builds, starts, publishes, kills, stops and starts again."""
    scenario.timed("build", lambda: project.compose("build"))
    scenario.timed("test servers", lambda: build_images(lambda _: None))
    scenario.timed("up", project.up)
    scenario.timed("first look", scenario.first_look)
    scenario.load()
    scenario.timed("publish and read back", scenario.publish_and_read)
    scenario.measure()
    scenario.timed("Spark worker restarted", scenario.restart_spark_in_mid_stage)
    scenario.timed("sender and leader killed", scenario.kill_sender_and_leader)
    scenario.timed("down and up", scenario.stop_and_start)


def use_store(scenario: ComposeScenario, project: ComposeProject) -> None:
    """The same files on the object store: two runs, and the disk that they take."""
    scenario.timed("up with s3", project.up)
    scenario.load()
    scenario.timed("publish and read back", scenario.publish_and_read)
    scenario.load(speed=3)
    scenario.timed("publish a change", lambda: scenario.publish_and_read(speed=3))
    kibibytes = int(project.run_inside("object-store", "du", "-sk", "/data").split()[0])
    scenario.check(kibibytes < 2_000_000, f"the object store takes {kibibytes} KiB")


if __name__ == "__main__":
    typer.run(main)
