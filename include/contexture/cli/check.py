"""`contexture check`: publication files, what they would publish, and structures that are too large."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from contexture.operations.actions.check import Checked, StructurePreview
    from contexture.operations.actions.preview import Preview
    from contexture.operations.actions.structure_sizes import SizeReport, Sizes
    from contexture.publications import Problem, Publication

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
    from contexture.operations.actions import check

    if sample is not None and source is not None:
        raise typer.BadParameter("give --sample or --source, not both")
    checked = check.check(files or [], check.PreviewFrom(sample=sample, source=source, entities=entities))
    show = print_check_json if as_json else print_check_text
    show(checked)
    raise typer.Exit(_exit_code(checked))


def _exit_code(checked: list[Checked]) -> int:
    if any(each.loaded.error for each in checked):
        return exit_codes.INVALID
    unreachable = any(each.unreachable for each in checked)
    return exit_codes.UNREACHABLE if unreachable else exit_codes.OK


def _check_sizes(files: list[Path], *, as_json: bool) -> None:
    from contexture.operations.actions import structure_sizes

    with progress_on_standard_error() as progress:
        measured = structure_sizes.measure_publications(structure_sizes.publications(files), progress)
    (print_sizes_json if as_json else print_sizes_text)(measured)
    raise typer.Exit(_exit_code_of_sizes(measured))


def _exit_code_of_sizes(measured: list[SizeReport]) -> int:
    if any(each.loaded.error or each.has_too_large for each in measured):
        return exit_codes.INVALID
    if any(each.unreachable for each in measured):
        return exit_codes.UNREACHABLE
    return exit_codes.USAGE if any(each.failure for each in measured) else exit_codes.OK


_RECORDS_SHOWN = 40
_REFUSED_SHOWN = 10
_ENTITIES_SHOWN = 3


def print_check_json(checked: list[Checked]) -> None:
    """One JSON document about all files."""
    document = {
        "valid": all(each.loaded.error is None for each in checked),
        "publications": [_as_dict(each) for each in checked],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def _as_dict(checked: Checked) -> dict[str, object]:
    from contexture.publications import fingerprint
    from contexture.publications.fingerprint import CONTENTS

    loaded, publication, preview = checked.loaded, checked.loaded.publication, checked.preview
    problems = loaded.error.problems if loaded.error else loaded.notes
    return {
        "path": str(loaded.path),
        "valid": loaded.error is None,
        "problems": [problem.as_dict() for problem in problems],
        "name": publication.name if publication else None,
        "fingerprint": fingerprint(publication) if publication else None,
        "configuration": publication.model_dump(mode="json", exclude=CONTENTS) if publication else None,
        "preview": dataclasses.asdict(preview) | {"topics": preview.topics} if preview else None,
        "structures": dataclasses.asdict(checked.structures) if checked.structures else None,
        "no_preview": checked.no_preview or None,
    }


def print_check_text(checked: list[Checked]) -> None:
    """Everything about each file, then one line about all."""
    console = Console(highlight=False, soft_wrap=True)
    for each in checked:
        _print_file(console, each)
    wrong = sum(each.loaded.error is not None for each in checked)
    right = len(checked) - wrong
    console.print(f"{right} of {len(checked)} right" if wrong else f"{right} right", style="red" if wrong else "green")


def _print_file(console: Console, checked: Checked) -> None:
    from contexture.publications import fingerprint

    loaded = checked.loaded
    problems = loaded.error.problems if loaded.error else loaded.notes
    for problem in problems:
        print_problem(console, problem)
    if loaded.publication is not None:
        console.print(Text(f"{loaded.path}: right", style="bold green"))
        console.print(Text(f"fingerprint {fingerprint(loaded.publication)}", style="dim"))
        console.print()
        console.print(_configuration(loaded.publication))
    if checked.preview is not None:
        print_preview(console, checked.preview)
    elif checked.structures is not None:
        print_structures(console, checked.structures)
    elif checked.no_preview:
        style = "red" if checked.unreachable else "yellow"
        console.print(Text(f"no preview: {checked.no_preview}", style=style))
    console.print()


def print_problem(console: Console, problem: Problem) -> None:
    """Prints an error or a note with its line."""
    first, *rest = str(problem).splitlines()
    console.print(Text(first, style="bold red" if problem.severity == "error" else "yellow"))
    for line in rest:
        console.print(Text(line))
    console.print()


def _configuration(publication: Publication) -> Text:
    """Every key as it will be used; what the file doesn't say is dim."""
    from contexture.publications.fingerprint import resolve_keys

    text = Text()
    for each in resolve_keys(publication):
        line = f"{'  ' * each.depth}{each.key}:" + ("" if each.value is None else f" {each.value}")
        text.append(f"{line}  # default\n" if each.is_default else f"{line}\n", style="dim" if each.is_default else "")
    return text


def print_preview(console: Console, preview: Preview, shown: int = _RECORDS_SHOWN) -> None:
    """Prints the first records, and what would go to quarantine."""
    counts = f"{preview.entities} entities, {preview.batches} batches, {len(preview.records)} records"
    console.print(Text(f"preview of {preview.origin}: {counts}, {len(preview.topics)} topics", style="bold"))
    if not preview.entities:
        hint = "a broker returns nothing for a service that does not exist: check `service`, `service_path` and `types`"
        console.print(Text(f"the source holds no matching entity; {hint}", style="yellow"))
    if preview.records:
        console.print(Text("  batch.sub-batch  topic, then key, size and entities", style="dim"))
        console.print(_records(preview, shown), end="")
    if len(preview.records) > shown:
        console.print(Text(f"and {len(preview.records) - shown} more; --json has all", style="dim"))
    for refused in preview.refused[:_REFUSED_SHOWN]:
        who = refused.id or "an entity without id"
        console.print(Text(f"to quarantine: {who}: {refused.rule}: {refused.message}", style="red"))
    if len(preview.refused) > _REFUSED_SHOWN:
        console.print(Text(f"and {len(preview.refused) - _REFUSED_SHOWN} more to quarantine", style="red"))
    for rule, count in sorted(preview.warnings.items()):
        console.print(Text(f"warning {rule}: {count} entities; published anyway", style="yellow"))


def print_structures(console: Console, preview: StructurePreview) -> None:
    """Prints the topics of structures."""
    counts = f"{preview.selected} of {preview.held} structures are selected, for {len(preview.topics)} topics"
    console.print(Text(f"preview of {preview.origin}: {counts}", style="bold"))
    for topic, count in list(preview.topics.items())[:_RECORDS_SHOWN]:
        console.print(Text(f"  {count:>8}  {topic}"))
    if len(preview.topics) > _RECORDS_SHOWN:
        console.print(Text(f"and {len(preview.topics) - _RECORDS_SHOWN} more; --json has all", style="dim"))
    for urn, topics in list(preview.structures.items())[:_ENTITIES_SHOWN]:
        console.print(Text(f"  key {urn} to {', '.join(topics)}", style="dim"))
    if preview.unrouted:
        first = ", ".join(preview.unrouted[:_ENTITIES_SHOWN])
        console.print(
            Text(f"{len(preview.unrouted)} are not published, because no route selects them: {first}", style="yellow")
        )
    for urn, reason in list(preview.refused.items())[:_REFUSED_SHOWN]:
        console.print(Text(f"to quarantine: {urn}: {reason}", style="red"))
    for names in preview.clashes:
        console.print(Text(f"Kafka treats {' and '.join(names)} as one topic", style="red"))


def _records(preview: Preview, most: int) -> Text:
    """Two lines for each record; names are too long for columns."""
    shown = preview.records[:most]
    width = max(len(f"{record.batch}.{record.sub_batch}") for record in shown)
    text = Text()
    for record in shown:
        text.append(f"  {f'{record.batch}.{record.sub_batch}':>{width}}  {record.topic}\n")
        key = "no key" if record.key is None else f"key {record.key}"
        counts = f"{record.events} {'event' if record.events == 1 else 'events'}, {record.value_bytes} bytes"
        text.append(f"  {'':>{width}}  {key}; {counts}: {_shown_entities(record.entities)}\n", style="dim")
    return text


def _shown_entities(entities: tuple[str, ...]) -> str:
    shown = ", ".join(entities[:_ENTITIES_SHOWN])
    more = len(entities) - _ENTITIES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


_SHOWN = 40


@contextmanager
def progress_on_standard_error() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A bar for each publication that is being measured."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def of(name: str) -> Callable[[int, int], None]:
            bar = bars.add_task(f"measuring {name}", total=None)
            return lambda done, total: bars.update(bar, completed=done, total=total)

        yield of


def print_sizes_json(measured: Sequence[SizeReport]) -> None:
    """One JSON document about all publications."""
    document = {
        "fit": all(_fits(each) for each in measured),
        "publications": [_sizes_as_dict(each) for each in measured],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_sizes_text(measured: Sequence[SizeReport]) -> None:
    """What is too large, by publication."""
    console = Console(highlight=False, soft_wrap=True)
    for each in measured:
        for line, style in _lines(each):
            console.print(Text(line, style=style))


def _fits(measured: SizeReport) -> bool:
    return not (measured.failure or measured.has_too_large or measured.loaded.error)


def _sizes_as_dict(measured: SizeReport) -> dict[str, object]:
    publication, limits, sizes = measured.loaded.publication, measured.limits, measured.sizes
    return {
        "path": str(measured.loaded.path),
        "name": publication.name if publication else None,
        "fit": _fits(measured),
        "problems": [problem.as_dict() for problem in measured.loaded.error.problems] if measured.loaded.error else [],
        "skipped": measured.skipped or None,
        "failure": measured.failure or None,
        "limits": asdict(limits) if limits else None,
        **(asdict(sizes) if sizes else {}),
    }


def _lines(measured: SizeReport) -> Iterator[tuple[str, str]]:
    publication = measured.loaded.publication
    name = publication.name if publication else str(measured.loaded.path)
    if measured.loaded.error is not None:
        yield str(measured.loaded.error), "bold red"
    elif measured.skipped:
        yield f"{name}: not measured: {measured.skipped}", "yellow"
    elif measured.sizes is None or measured.limits is None:
        yield f"{name}: {measured.failure}", "red"
    else:
        yield f"{name}: {_summary(measured.sizes)}", "bold"
        if measured.limits.unknown:
            yield f"  {measured.limits.unknown}; only what is known without them was compared", "yellow"
        yield from _findings(measured.sizes)


def _summary(sizes: Sizes) -> str:
    largest = f", the largest {sizes.largest_bytes:,} bytes ({sizes.largest_urn})" if sizes.largest_urn else ""
    return f"{sizes.measured:,} of {sizes.selected:,} selected structures measured{largest}"


def _findings(sizes: Sizes) -> Iterator[tuple[str, str]]:
    for each in sizes.too_large:
        limits = "; ".join(map(str, each.exceeded))
        yield f"  too large: {each.urn}: {each.size_bytes:,} bytes; {limits}", "red"
    unexpressed = list(sizes.inexpressible.items())
    for urn, reason in unexpressed[:_SHOWN]:
        yield f"  produces no event: {urn}: {reason}", "yellow"
    if len(unexpressed) > _SHOWN:
        yield f"  and {len(unexpressed) - _SHOWN:,} more that produce no event; --json has all", "yellow"
    if sizes.gone:
        yield f"  deleted while they were read: {len(sizes.gone):,}", "yellow"
    if not sizes.too_large:
        yield "  all of them fit", "green"
