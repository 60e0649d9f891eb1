"""What `uv.lock` pins: each package with each version that some Python or machine gets."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One version of a package."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def pins_in(lock: str) -> list[Pin]:
    """The pins of a lock file that come from a registry, in order; the project itself is none."""
    packages = tomllib.loads(lock)["package"]
    return sorted({Pin(each["name"], each["version"]) for each in packages if "registry" in each["source"]})


def rounds(pins: Iterable[Pin]) -> list[list[Pin]]:
    """The pins in as few lists as possible, none of which names a package twice."""
    found: list[list[Pin]] = []
    for pin in pins:
        for one in found:
            if one[-1].name != pin.name:
                one.append(pin)
                break
        else:
            found.append([pin])
    return found
