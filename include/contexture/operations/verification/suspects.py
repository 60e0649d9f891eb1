"""Keys that differ from the source, in the words of a verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from contexture.operations.verification.findings import SAMPLES, Kind, Sample, shown_name
from contexture.operations.verification.source_comparison import MISSING, SCATTERED, Suspect

CHANGED: Final = "changed while it was read: a second look found it equal, or changed again"
BEHIND: Final = "changed in the source after the last concluded run, which the next run publishes"
ABSENT: Final = "absent from the source in one run: its tombstone follows when a second run finds it absent"
HELD_BACK: Final = "quarantined: topics keep what they had of it"

_DETAILS: Final[Mapping[str, str]] = {
    MISSING: "the source holds it, and no record or a tombstone is the last of its key",
    SCATTERED: "its key has values in several partitions",
    "body": "the source holds another body",
    "headers": "its headers are not those of the source's content",
    "time": "its time is not the source's time of change",
}
_STRANGE: Final = "neither the source nor state has it: its tombstone is missing, or another writer made it"
_UNDELETED: Final = "the source no longer has it; state holds it until two runs have found it absent"


def kind_of(suspect: Suspect) -> Kind:
    """Returns the kind of a difference, in the words of `Verification`."""
    match suspect.verdict:
        case "missing":
            return "missing"
        case "extra":
            return "extra"
        case "scattered":
            return "order"
        case _:
            return "different"


def count_kinds(suspects: list[Suspect], more: Counter[Kind]) -> dict[Kind, int]:
    """Returns how many differences there are of each kind, with those of which only the number is known."""
    counted = Counter(map(kind_of, suspects)) + more
    kinds: tuple[Kind, ...] = ("missing", "extra", "different", "order")
    return {kind: counted[kind] for kind in kinds}


def sample_suspects(suspects: list[Suspect]) -> Iterator[Sample]:
    """Gives the first few differences of each kind, with what each means."""
    shown: Counter[Kind] = Counter()
    for suspect in suspects:
        kind = kind_of(suspect)
        shown[kind] += 1
        if shown[kind] <= SAMPLES:
            strange = _STRANGE if suspect.entity is None else _UNDELETED
            detail = _DETAILS.get(suspect.verdict, strange)
            name = shown_name(suspect.name if suspect.name is not None else suspect.key)
            yield Sample(kind=kind, topic=suspect.topic, partition=suspect.partition, name=name, detail=detail)
