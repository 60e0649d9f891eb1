"""`contexture resync`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


class Mode(StrEnum):
    """What the started runs send."""

    FULL = "full"
    CHANGES = "changes"


@app.command("resync")
def resynchronise(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Publications.")],
    *,
    reason: Annotated[str, typer.Option(help="Reason; stored with the runs.")],
    mode: Annotated[Mode, typer.Option(help="full: everything, and tombstones for what was deleted.")] = Mode.FULL,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Start publications again, through Airflow's DAG `resynchronise`.

    Airflow is found by the environment: CONTEXTURE_AIRFLOW_URL, and either CONTEXTURE_AIRFLOW_TOKEN or
    CONTEXTURE_AIRFLOW_USER and CONTEXTURE_AIRFLOW_PASSWORD. The runs are started, not waited for.

    Exit codes: 0 started; 2 a name, a variable or a permission is wrong; 3 Airflow did not answer.
    """
    from contexture.operations.actions import interventions
    from contexture.operations.airflow_client import AirflowClient, AirflowCredentials

    if not reason.strip():
        raise typer.BadParameter("say why", param_hint="--reason")
    airflow, dag = AirflowClient(AirflowCredentials.from_environment()), interventions.RESYNCHRONISE
    started = interventions.resynchronise(airflow, names, mode=mode.value, reason=reason)
    if as_json:
        facts = {"publications": list(started.publications), "mode": mode.value, "paused": list(started.paused)}
        typer.echo(json.dumps({"dag": dag, "run": started.run, **facts}))
    else:
        wanted = ", ".join(started.publications)
        typer.echo(f"started {dag} for {wanted} ({mode.value}): {airflow.page(dag, started.run)}")
        for name in started.paused:
            typer.echo(
                f"publish_{name} is paused and left out; it catches up by its own mode when it is resumed, or in full "
                "if it reads a registry and a full run was requested"
            )
