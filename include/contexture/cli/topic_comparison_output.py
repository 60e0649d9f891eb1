"""How `contexture topics compare` shows what it found: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from contexture.operations.actions.topic_comparison import Compared, Differing, Entity, Side

_SHOWN = 20


def print_json(compared: Compared) -> None:
    """One JSON document about everything that differs."""
    comparison = compared.comparison
    document = {
        "alike": compared.alike,
        "left": _counts(compared.left),
        "right": _counts(compared.right),
        "topics_only_left": compared.only_left,
        "topics_only_right": compared.only_right,
        "equal": comparison.equal,
        "only_left": [_named(entity) for entity in comparison.only_left],
        "only_right": [_named(entity) for entity in comparison.only_right],
        "differing": [
            {
                **_named(each.entity),
                "differing": each.differing,
                "only_left": each.only_left,
                "only_right": each.only_right,
            }
            for each in comparison.differing
        ],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(compared: Compared) -> None:
    """Counts, then the first of what differs."""
    console = Console(highlight=False, soft_wrap=True)
    comparison = compared.comparison
    for name, side in (("left", compared.left), ("right", compared.right)):
        console.print(Text(f"{name}: {', '.join(f'{count} {what}' for what, count in _counts(side).items())}"))
    _print_some(console, "topics only left", compared.only_left)
    _print_some(console, "topics only right", compared.only_right)
    _print_some(console, "entities only left", [_shown(entity) for entity in comparison.only_left])
    _print_some(console, "entities only right", [_shown(entity) for entity in comparison.only_right])
    _print_some(console, "entities that differ", [_difference(each) for each in comparison.differing])
    verdict = "both sides tell the same" if compared.alike else "the sides differ"
    style = "bold green" if compared.alike else "bold red"
    console.print(Text(f"{comparison.equal} entities are equal; {verdict}", style=style))


def _print_some(console: Console, title: str, items: Sequence[str]) -> None:
    if not items:
        return
    console.print(Text(f"{title}: {len(items)}", style="red"))
    for item in items[:_SHOWN]:
        console.print(Text(f"  {item}"))
    if len(items) > _SHOWN:
        console.print(Text(f"  and {len(items) - _SHOWN} more; --json has all", style="dim"))


def _counts(side: Side) -> dict[str, int]:
    return {
        "entities": len(side.entities),
        "lines": side.lines,
        "unreadable": side.unreadable,
        "tombstones": side.tombstones,
    }


def _named(entity: Entity) -> dict[str, str]:
    return dict(zip(("service", "service_path", "id", "type"), entity, strict=True))


def _shown(entity: Entity) -> str:
    service, path, entity_id, entity_type = entity
    return f"{entity_id} ({entity_type}) in {service}{path}"


def _difference(each: Differing) -> str:
    parts = (("differing", each.differing), ("only left", each.only_left), ("only right", each.only_right))
    return f"{_shown(each.entity)}: {'; '.join(_part(title, names) for title, names in parts if names)}"


def _part(title: str, names: Iterable[str]) -> str:
    return f"{title} {', '.join(names)}"
