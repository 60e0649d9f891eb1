"""How `contexture check --sizes` shows what it found: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from contexture.operations.actions.structure_sizes import Measured, Sizes

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


def print_json(measured: Sequence[Measured]) -> None:
    """One JSON document about all publications."""
    document = {
        "fit": all(_fits(each) for each in measured),
        "publications": [_as_dict(each) for each in measured],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(measured: Sequence[Measured]) -> None:
    """What is too large, by publication."""
    console = Console(highlight=False, soft_wrap=True)
    for each in measured:
        for line, style in _lines(each):
            console.print(Text(line, style=style))


def _fits(measured: Measured) -> bool:
    return not (measured.failure or measured.has_too_large or measured.loaded.error)


def _as_dict(measured: Measured) -> dict[str, object]:
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


def _lines(measured: Measured) -> Iterator[tuple[str, str]]:
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
        yield f"  gives no event: {urn}: {reason}", "yellow"
    if len(unexpressed) > _SHOWN:
        yield f"  and {len(unexpressed) - _SHOWN:,} more that give no event; --json has all", "yellow"
    if sizes.gone:
        yield f"  gone while they were read: {len(sizes.gone):,}", "yellow"
    if not sizes.too_large:
        yield "  all of them fit", "green"
