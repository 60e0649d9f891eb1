"""What an NGSI-LD reader has to know of the broker it asks; everything else it learns from the answers."""

from __future__ import annotations

from typing import Literal, get_args

Flavour = Literal["orion", "orion-ld", "scorpio", "stellio", "unknown"]
FLAVOURS: tuple[Flavour, ...] = get_args(Flavour)

_PAGE_SIZES: dict[Flavour, int] = {"orion-ld": 1000, "scorpio": 1000}
_SAFE_PAGE_SIZE = 100


def largest_page(flavour: Flavour) -> int:
    """The page size to begin with: one that the broker grants unless it was configured otherwise."""
    return _PAGE_SIZES.get(flavour, _SAFE_PAGE_SIZE)
