"""`contexture doctor`: is everything here that runs need?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.operations.actions.doctor import PointResult

app = typer.Typer(add_completion=False)

_COLOURS = {
    "ok": typer.colors.GREEN,
    "warning": typer.colors.YELLOW,
    "error": typer.colors.RED,
    "skipped": typer.colors.BLUE,
}


@app.command("doctor")
def examine_installation(
    *,
    without_connections: Annotated[
        bool,
        typer.Option(
            "--without-connections",
            help=(
                "Test no connections. Otherwise each that publications name is tested, as by `contexture connection "
                "test`."
            ),
        ),
    ] = False,
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for each step.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Check that everything a run needs is installed and reachable: packages, Java, storage, connections and more.

    That is: the replicas of the ledgers in Kafka, and Airflow's pools.

    Run it where tasks run, with their environment. Each point that is not as it should be names its remedy. Only the
    storage is written to (a file that is removed again), and Kafka by its connection test.

    Exit codes: 0 nothing stops runs; 1 something does.
    """
    from contexture.operations.actions.doctor import InstallationReport, installation_points, machine_points, run_checks

    found: list[PointResult] = []
    for point in (
        *machine_points(),
        *installation_points(try_connections=not without_connections, timeout_seconds=timeout_seconds),
    ):
        found += run_checks([point])
        if not as_json:
            _show(found[-1])
    examination = InstallationReport(points=tuple(found))
    if as_json:
        typer.echo(examination.model_dump_json(indent=2))
    raise typer.Exit(exit_codes.OK if examination.is_well else exit_codes.INVALID)


def _show(point: PointResult) -> None:
    typer.secho(f"{point.name}: {point.verdict}: {point.detail}", fg=_COLOURS[point.verdict])
    if point.remedy:
        typer.echo(f"  next: {point.remedy}")
