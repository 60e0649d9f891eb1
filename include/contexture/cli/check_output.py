"""How `contexture check` shows what it found: for people, and for scripts."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from contexture.operations.actions.check import Checked
from contexture.publications import Problem, Publication, fingerprint
from contexture.publications.resolved import CONTENTS, understood

if TYPE_CHECKING:
    from contexture.operations.actions.preview import Preview
    from contexture.operations.actions.structure_preview import StructurePreview

_RECORDS_SHOWN = 40
_REFUSED_SHOWN = 10
_ENTITIES_SHOWN = 3


def print_json(checked: list[Checked]) -> None:
    """One JSON document about all files."""
    document = {
        "valid": all(each.loaded.error is None for each in checked),
        "publications": [_as_dict(each) for each in checked],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def _as_dict(checked: Checked) -> dict[str, object]:
    loaded, publication = checked.loaded, checked.loaded.publication
    problems = loaded.error.problems if loaded.error else loaded.notes
    return {
        "path": str(loaded.path),
        "valid": loaded.error is None,
        "problems": [problem.as_dict() for problem in problems],
        "name": publication.name if publication else None,
        "fingerprint": fingerprint(publication) if publication else None,
        "configuration": publication.model_dump(mode="json", exclude=CONTENTS) if publication else None,
        "preview": _preview_as_dict(checked.preview) if checked.preview else None,
        "structures": dataclasses.asdict(checked.structures) if checked.structures else None,
        "no_preview": checked.no_preview or None,
    }


def _preview_as_dict(preview: Preview) -> dict[str, object]:
    return {**dataclasses.asdict(preview), "topics": preview.topics}


def print_text(checked: list[Checked]) -> None:
    """Everything about each file, then one line about all."""
    console = Console(highlight=False, soft_wrap=True)
    for each in checked:
        _print_file(console, each)
    wrong = sum(each.loaded.error is not None for each in checked)
    right = len(checked) - wrong
    console.print(f"{right} of {len(checked)} right" if wrong else f"{right} right", style="red" if wrong else "green")


def _print_file(console: Console, checked: Checked) -> None:
    loaded = checked.loaded
    problems = loaded.error.problems if loaded.error else loaded.notes
    for problem in problems:
        _print_problem(console, problem)
    if loaded.publication is not None:
        console.print(Text(f"{loaded.path}: right", style="bold green"))
        console.print(Text(f"fingerprint {fingerprint(loaded.publication)}", style="dim"))
        console.print()
        console.print(_configuration(loaded.publication))
    if checked.preview is not None:
        _print_preview(console, checked.preview)
    elif checked.structures is not None:
        _print_structures(console, checked.structures)
    elif checked.no_preview:
        style = "red" if checked.unreachable else "yellow"
        console.print(Text(f"no preview: {checked.no_preview}", style=style))
    console.print()


def _print_problem(console: Console, problem: Problem) -> None:
    first, *rest = str(problem).splitlines()
    console.print(Text(first, style="bold red" if problem.severity == "error" else "yellow"))
    for line in rest:
        console.print(Text(line))
    console.print()


def _configuration(publication: Publication) -> Text:
    """Every key as it will be used; what the file doesn't say is dim."""
    text = Text()
    for each in understood(publication):
        line = f"{'  ' * each.depth}{each.key}:" + ("" if each.value is None else f" {each.value}")
        text.append(f"{line}  # default\n" if each.is_default else f"{line}\n", style="dim" if each.is_default else "")
    return text


def _print_preview(console: Console, preview: Preview) -> None:
    counts = f"{preview.entities} entities, {preview.batches} batches, {len(preview.records)} records"
    console.print(Text(f"preview of {preview.origin}: {counts}, {len(preview.topics)} topics", style="bold"))
    if not preview.entities:
        hint = "a service that doesn't exist answers like an empty one: check `service`, `service_path` and `types`"
        console.print(Text(f"the source selects no entity; {hint}", style="yellow"))
    if preview.records:
        console.print(Text("  batch.sub-batch  topic, then key, size and entities", style="dim"))
        console.print(_records(preview), end="")
    if len(preview.records) > _RECORDS_SHOWN:
        console.print(Text(f"and {len(preview.records) - _RECORDS_SHOWN} more; --json has all", style="dim"))
    for refused in preview.refused[:_REFUSED_SHOWN]:
        who = refused.id or "an entity without id"
        console.print(Text(f"to quarantine: {who}: {refused.rule}: {refused.message}", style="red"))
    if len(preview.refused) > _REFUSED_SHOWN:
        console.print(Text(f"and {len(preview.refused) - _REFUSED_SHOWN} more to quarantine", style="red"))
    for rule, count in sorted(preview.warnings.items()):
        console.print(Text(f"warning {rule}: {count} entities; published all the same", style="yellow"))


def _print_structures(console: Console, preview: StructurePreview) -> None:
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
        console.print(Text(f"{len(preview.unrouted)} go nowhere, for no route selects them: {first}", style="yellow"))
    for urn, reason in list(preview.refused.items())[:_REFUSED_SHOWN]:
        console.print(Text(f"to quarantine: {urn}: {reason}", style="red"))
    for names in preview.clashes:
        console.print(Text(f"Kafka takes {' and '.join(names)} for one topic", style="red"))


def _records(preview: Preview) -> Text:
    """Two lines for each record; names are too long for columns."""
    shown = preview.records[:_RECORDS_SHOWN]
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
