"""`contexture state`: what the topics hold according to Contexture."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contexture.operations.recovery.state import RebuiltState

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def state() -> None:
    """State: what the topics of a publication hold, as the next run compares it with the source."""


@app.command("rebuild")
def rebuild_state(
    publication: Annotated[str, typer.Argument(help="Name of the publication.")],
    *,
    topics: Annotated[
        str | None, typer.Option("--topics", help="Pattern of the topics to read, instead of the default.")
    ] = None,
    only_differences: Annotated[
        bool, typer.Option("--only-differences", help="The next run sends only what differs, and not everything.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written to state.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write without confirmation.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document for scripts; needs --yes to write.")
    ] = False,
) -> None:
    """Rebuild lost state from the publication's topics, so that what the source deleted since then is deleted.

    Pause the publication's DAG first. The topics are read as a read-committed consumer gets them. What state holds
    already stays; what else lies in the topics, and is this publication's by its identity and topic, is added. Nothing
    is sent: two full runs that follow send what the source holds, and delete what it lacks, under the usual guards.
    Publications and connections come from the environment, as for `contexture topics plan`.

    Exit codes: 0 done, or shown; 2 its records don't hold their identities, an outbox waits, or something isn't there;
    3 brokers or storage are away.
    """
    from contexture.operations.actions.rebuild import opened

    def report(sentence: str) -> None:
        typer.echo(sentence, err=True)

    with opened(publication, topics, only_differences=only_differences, report=report) as (rebuilding, found):
        if not as_json:
            _print(found)
        wanted = bool(found.found) and not dry_run
        writes = wanted and (yes or (not as_json and typer.confirm("Write state?")))
        if writes:
            rebuilding.write(only_differences=only_differences)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "written": writes}, indent=2))
    else:
        typer.echo(_next(publication, writes=writes, only_differences=only_differences))


def _print(found: RebuiltState) -> None:
    typer.echo(f"{found.publication}: {found.records} records in {found.topics} topics were read")
    for topic in found.missing:
        typer.echo(f"  topic {topic} does not exist, or this user may not see it")
    typer.echo(f"  {found.found} identities were found that state does not hold ({found.held} it does)")
    for sample in found.samples:
        typer.echo(f"    {sample!r}")
    if found.found > len(found.samples):
        typer.echo(f"    and {found.found - len(found.samples)} more")
    typer.echo(f"  for {found.with_content} of them, the content is known too")
    for why, count in found.left_alone.items():
        typer.echo(f"  not changed, {why}: {count} keys")


def _next(publication: str, *, writes: bool, only_differences: bool) -> str:
    if not writes:
        return "nothing was written"
    mode = "" if only_differences else " --mode full"
    return (
        f"written; resume the DAG and start two runs: contexture resync {publication}{mode} --reason …, then run "
        f"contexture verify {publication}"
    )
