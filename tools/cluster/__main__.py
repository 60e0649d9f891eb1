"""`python -m tools.cluster`: runs the platform on the engines of a cluster, kills parts of it, and compares."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from contexture.errors import ContextureError
from contexture_sandbox.demo.console import DemoConsole
from contexture_sandbox.stack import StackOptions, project_folder
from tools.cluster.evidence import gathered
from tools.cluster.platform import ClusterPlatform
from tools.cluster.report import measured, tables, write_json
from tools.cluster.scenario import ENTITIES, STRUCTURES, ClusterScenario, prepare


def main(
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets everything that was found.")] = None,
) -> None:
    """Starts PostgreSQL, Redis, an S3 server, Spark, three brokers and Airflow with Celery; publishes, and kills.

    Exit codes: 0 what is in Kafka is what was prepared, whatever was killed; 1 it is not, or something did not start.
    """
    console, started = DemoConsole(), time.monotonic()
    publications = project_folder() / "include" / "publications"
    # The home is on the object store; this one stays unused.
    options = StackOptions(publications, Path("unused"), entities=ENTITIES, structures=STRUCTURES, prepare=prepare)
    try:
        with ClusterPlatform(options, console.line) as platform:
            scenario = ClusterScenario(platform, console)
            scenario.run()
            memory = measured(platform)
            console.line("reading Kafka back")
            evidence = gathered(scenario, memory, time.monotonic() - started)
    except ContextureError as error:
        console.line(f"error: {error}", style="red")
        raise typer.Exit(1) from None
    for table in tables(evidence):
        console.table(table)
    if json_file:
        write_json(json_file, evidence)
    problems = evidence.problems()
    for problem in problems:
        console.line(problem, style="red")
    console.line("the cluster failed" if problems else "all that was prepared is in Kafka, once")
    raise typer.Exit(1 if problems else 0)


if __name__ == "__main__":
    # However it ends, everything it has started goes with it.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
