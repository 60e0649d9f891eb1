"""The parsers that are fuzzed, in groups by what they read."""

from __future__ import annotations

from tools.fuzz.target import Target
from tools.fuzz.targets import (
    answers,
    broker,
    connections,
    events,
    migrating,
    publications,
    reception,
    records,
    registry,
    registry_answers,
    stored,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for group in (
        *(broker, reception, answers, registry, registry_answers, publications, events, records, stored),
        *(migrating, connections),
    )
    for target in group.TARGETS
}
"""By name."""
