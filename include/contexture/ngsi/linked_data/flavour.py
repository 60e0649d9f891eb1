"""What an NGSI-LD reader has to know of the broker it asks; everything else it learns from the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Flavour = Literal["orion", "orion-ld", "scorpio", "stellio", "unknown"]
FLAVOURS: tuple[Flavour, ...] = get_args(Flavour)

SPEAKS_LINKED_DATA: frozenset[Flavour] = frozenset(("orion-ld", "scorpio", "stellio"))
SPEAKS_NGSIV2: frozenset[Flavour] = frozenset(("orion", "orion-ld"))

_PAGE_SIZES: dict[Flavour, int] = {"orion-ld": 1000, "scorpio": 1000}
_SAFE_PAGE_SIZE = 100
_LOCAL: dict[Flavour, Mapping[str, str]] = {"orion-ld": {"local": "true"}, "scorpio": {"localOnly": "true"}}


def largest_page(flavour: Flavour) -> int:
    """The page size to begin with: one that the broker grants unless it was configured otherwise."""
    return _PAGE_SIZES.get(flavour, _SAFE_PAGE_SIZE)


def held_itself(flavour: Flavour) -> Mapping[str, str]:
    """The parameter that asks for what the broker itself holds, and not for what it would ask others."""
    return _LOCAL.get(flavour, {})
