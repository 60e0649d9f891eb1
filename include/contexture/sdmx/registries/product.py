"""Which registry says so itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

PRODUCT = "/ws/fusion/info/product"
_VERSION = re.compile(r"(\d+)(?:[.\d]*)")


@dataclass(frozen=True, slots=True)
class Product:
    """What the product endpoint of a Fusion (Metadata) Registry tells; `version` such as `12.4.2`."""

    version: str

    @property
    def release(self) -> int:
        """The first number of the version; 0 where it has none."""
        found = _VERSION.match(self.version)
        return int(found[1]) if found else 0

    @property
    def knows_as_of(self) -> bool:
        """Since 12 it keeps the history of every artefact (SDMX-REST 2.2.0)."""
        return self.release >= 12

    @property
    def has_version_2(self) -> bool:
        """Whether SDMX-REST 2 is surely there."""
        return self.release >= 11

    def __str__(self) -> str:
        return f"{'FMR' if self.release >= 11 else 'Fusion Registry'} {self.version}"


def product_in(body: bytes) -> Product | None:
    """What an answer of the product endpoint says; None where it is none."""
    try:
        told = msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    version = {name.lower(): value for name, value in told.items()}.get("version")
    return Product(version[:40]) if isinstance(version, str) and _VERSION.match(version) else None
