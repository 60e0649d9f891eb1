"""`contexture check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.operations.actions.check import Checked
    from contexture.operations.actions.structure_sizes import Measured

app = typer.Typer(add_completion=False)

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files or folders, with --sizes also names; without: $CONTEXTURE_PUBLICATIONS, else include/publications."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")]
Sample = Annotated[Path | None, typer.Option(help="For the preview: entities in a JSON file, or a structure message.")]
Source = Annotated[str | None, typer.Option(help="Address of the context broker or registry for the preview.")]
Entities = Annotated[int, typer.Option(min=1, max=1000, help="How many entities of the source to preview.")]
SizesOnly = Annotated[bool, typer.Option("--sizes", help="Registries: which structures are too large to be sent.")]


@app.command("check")
def check_publications(
    files: Files = None,
    *,
    as_json: AsJson = False,
    sample: Sample = None,
    source: Source = None,
    entities: Entities = 20,
    sizes: SizesOnly = False,
) -> None:
    """Check publication files: everything that is wrong, the configuration as understood, and a preview.

    The preview shows the topics, keys, batches and sub-batches that entities of the source would get, and how many of
    a registry's structures would go to which topic. They are read from --sample or --source, else from the
    publication's connection, as Airflow takes it from the environment (AIRFLOW_CONN_CONTEXT_BROKER for `connection:
    context_broker`). Nothing is sent to Kafka.

    With --sizes every structure that publications select from their registries is read once, and its message compared
    with the limits of the client, of its topics and of the brokers, as far as these answer: what is above one would
    stop the producer. Do it before a full flush.

    Exit codes: 0 all files are right; 1 a file is wrong, or a structure is too large; 2 the command line is wrong; 3 a
    source can't be reached.
    """
    if sizes:
        _check_sizes(files or [], as_json=as_json)
    from contexture.cli import check_output
    from contexture.operations.actions import check

    if sample is not None and source is not None:
        raise typer.BadParameter("give --sample or --source, not both")
    checked = check.check(files or [], check.PreviewFrom(sample=sample, source=source, entities=entities))
    show = check_output.print_json if as_json else check_output.print_text
    show(checked)
    raise typer.Exit(_exit_code(checked))


def _exit_code(checked: list[Checked]) -> int:
    if any(each.loaded.error for each in checked):
        return exit_codes.INVALID
    unreachable = any(each.unreachable for each in checked)
    return exit_codes.UNREACHABLE if unreachable else exit_codes.OK


def _check_sizes(files: list[Path], *, as_json: bool) -> None:
    from contexture.cli import sizes_output
    from contexture.operations.actions import structure_sizes

    with sizes_output.progress_on_standard_error() as progress:
        measured = structure_sizes.measure_each(structure_sizes.publications(files), progress)
    (sizes_output.print_json if as_json else sizes_output.print_text)(measured)
    raise typer.Exit(_exit_code_of_sizes(measured))


def _exit_code_of_sizes(measured: list[Measured]) -> int:
    if any(each.loaded.error or each.has_too_large for each in measured):
        return exit_codes.INVALID
    if any(each.unreachable for each in measured):
        return exit_codes.UNREACHABLE
    return exit_codes.USAGE if any(each.failure for each in measured) else exit_codes.OK
