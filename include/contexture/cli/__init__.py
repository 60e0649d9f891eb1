"""The command line, `contexture …`: one module for each command, imported when that command is called.

Exit codes of all commands: 0 it is as it should be; 1 what was looked at is wrong; 2 the command line is wrong;
3 a source or broker could not be reached.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from contexture.cli import exit_codes, output
from contexture.errors import ContextureError, RetriableError

# Name of the command: its module, which has a Typer app called `app`, and its line in the help.
COMMANDS = {
    "check": ("contexture.cli.check", "Check publication files, and preview the topics and batches of their entities."),
    "new": ("contexture.cli.new", "Write a publication: choose what a source has, and get the file proposed."),
    "preview": ("contexture.cli.preview", "Show the topics that entities would get, name by name."),
    "status": ("contexture.cli.status", "Show the state of each publication: last run, identities, what is pending."),
    "doctor": ("contexture.cli.doctor", "Check that everything a run needs is installed and reachable."),
    "notify": ("contexture.cli.notify", "Receive notifications of context brokers, without Airflow."),
    "outbox": ("contexture.cli.outbox", "Show outboxes, send one again, or abandon one."),
    "transactions": ("contexture.cli.transactions", "Show the status of each Kafka transaction."),
    "quarantine": ("contexture.cli.quarantine", "Show what the row rules quarantined."),
    "dead-letters": ("contexture.cli.dead_letters", "Show the records that can never be sent, and why."),
    "models": ("contexture.cli.models", "Copy JSON Schemas that entities are validated against."),
    "resync": ("contexture.cli.resync", "Start publications again, through Airflow."),
    "backfill": (
        "contexture.cli.backfill",
        "Send past intervals again, through Airflow; show first what they contain.",
    ),
    "topics": (
        "contexture.cli.topics",
        "Read topics; compare them with publications, or with another cluster's.",
    ),
    "tables": ("contexture.cli.tables", "Rebuild the operational tables."),
    "verify": ("contexture.cli.verify", "Read a publication's topics back and compare them with what was sent."),
    "state": ("contexture.cli.state", "Rebuild lost state from a publication's topics."),
    "ledger": ("contexture.cli.ledger", "Rebuild a lost ledger, the topic that records what was sent."),
    "report": ("contexture.cli.report", "Report the data quality of a publication's runs, as one HTML or JSON file."),
    "contract": ("contexture.cli.contract", "Describe records for their readers: JSON Schema, AsyncAPI or ODCS."),
    "structures": ("contexture.cli.structures", "Show the artefacts in SDMX structure messages."),
    "import": (
        "contexture.cli.imports",
        "Turn the configuration of Cygnus, or a registry's producer, into publications.",
    ),
    "grouping-rules": (
        "contexture.cli.grouping_rules",
        "List, add, update, delete and check Cygnus' grouping rules in a file.",
    ),
    "connection": (
        "contexture.cli.connection",
        "Test a connection to Kafka, a broker or a registry; list the properties of one to Kafka.",
    ),
    "pools": ("contexture.cli.pools", "Print the pools that the DAGs need, for `airflow pools import`."),
    "schema": ("contexture.cli.schema", "Print the JSON Schema by which editors check publication files."),
    "version": ("contexture.cli.version", "Print the version of Contexture."),
}


class LazyCommands(TyperGroup):
    """Lists commands from the table above, and imports only the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the help shows of a command; calling it goes through `resolve_command`."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, imported now."""
        self.commands.update({name: self.get_command(ctx, name) for name in COMMANDS})
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            command = get_command(import_module(COMMANDS[name][0]).app)
        return name, command, rest


app = typer.Typer(
    name="contexture",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keeps Kafka topics equal to what a context broker (NGSI) and a structure registry (SDMX) hold.",
)


@app.callback()
def contexture() -> None:
    """Keeps Kafka topics equal to what a context broker (NGSI) and a structure registry (SDMX) hold."""


def main() -> None:
    """Runs the command line of this process; an error is one sentence and an exit code."""
    output.escape_unencodable()
    try:
        _run()
    except ContextureError as error:
        _end(str(error), exit_codes.UNREACHABLE if isinstance(error, RetriableError) else exit_codes.USAGE)
    except BrokenPipeError:
        sys.exit(exit_codes.INVALID)  # the reader has enough, as with `| head`
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        denied = isinstance(error, PermissionError)
        _end(
            f"{place}{error.strerror or error}. Next: check the path, its permissions and its room",
            exit_codes.USAGE if denied else exit_codes.UNREACHABLE,
        )


def _run() -> None:
    try:
        app(color=output.colour())
    finally:
        output.flush()


def _end(sentence: str, code: int) -> None:
    typer.secho(f"error: {sentence}", err=True, fg=typer.colors.RED, color=output.colour())
    sys.exit(code)
