"""The parsers that are fuzzed, in groups by what they read."""

from __future__ import annotations

from fuzz.target import Target
from fuzz.targets import answers, broker, events, migrating, publications, registry, stored

TARGETS: dict[str, Target] = {
    target.name: target
    for group in (broker, answers, registry, publications, events, stored, migrating)
    for target in group.TARGETS
}
"""By name."""
