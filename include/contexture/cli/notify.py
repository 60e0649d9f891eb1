"""`contexture notify`: taking notifications of context brokers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contexture.publications import Publication
    from contexture.reception import Access

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def notify() -> None:
    """Take notifications of context brokers, without Airflow."""


@app.command("serve")
def serve(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Publication files or folders; else CONTEXTURE_PUBLICATIONS."),
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="Address of this machine to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 5050,
    token_file: Annotated[Path | None, typer.Option(help="File with the tokens, one in each line.")] = None,
    without_credentials: Annotated[
        bool, typer.Option("--without-credentials", help="Accept notifications from anyone on this machine.")
    ] = False,
) -> None:
    """Receive notifications for publications in mode notifications, and store them for their next runs.

    Anyone who notifies shows the token of CONTEXTURE_NOTIFY_TOKEN, or one of the file (--token-file, else
    CONTEXTURE_NOTIFY_TOKEN_FILE), as `Authorization: Bearer …`. A notification is kept below CONTEXTURE_HOME, which
    must be that of Airflow's tasks, before it is answered.

    Ctrl-C or SIGTERM ends it, once what was begun is answered.

    Exit codes: 130 or 143 it was stopped by that signal; 2 no publication is notified, there is no token, or the
    address is taken.
    """
    from contexture.operations import environment
    from contexture.reception.application import ReceptionServer, reception
    from contexture.reception.targets import Inboxes, target_of

    access = _access(host, token_file, without_credentials=without_credentials)
    inboxes = Inboxes(environment.open_home())
    targets = {each.name: target_of(each, access, inboxes) for each in _notified(files or [])}
    server = ReceptionServer(reception(targets), host, port)
    for name in targets:
        typer.echo(f"{name}: {server.url}/contexture/notify/{name}")
    try:
        server.run()
    finally:
        inboxes.close()


def _access(host: str, token_file: Path | None, *, without_credentials: bool) -> Access:
    from contexture.errors import ConfigurationError
    from contexture.reception import ThisMachineOnly
    from contexture.reception.application import is_this_machine_only
    from contexture.reception.targets import credentials

    if not without_credentials:
        return credentials(os.environ, token_file)
    if not is_this_machine_only(host):
        raise ConfigurationError(
            f"others can reach {host}, and no token is required",
            next_step="leave --host out, or set a token and leave --without-credentials out",
        )
    return ThisMachineOnly(without_credentials=True)


def _notified(files: list[Path]) -> list[Publication]:
    from contexture.errors import ConfigurationError
    from contexture.operations.environment import publications_folder
    from contexture.publications import discover
    from contexture.reception.targets import receives_notifications

    paths = files or [publications_folder()]
    found = discover(*paths)
    for loaded in found:
        if loaded.error is not None:
            typer.secho(f"left out: {loaded.error}", err=True)
    notified = [
        each.publication for each in found if each.publication is not None and receives_notifications(each.publication)
    ]
    if not notified:
        raise ConfigurationError(
            f"no publication in {', '.join(map(str, paths))} receives notifications",
            next_step="write `mode: notifications` into the source of one, and correct what `contexture check` finds",
        )
    return notified
