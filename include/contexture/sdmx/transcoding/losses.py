"""What a converted structure no longer says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contexture.sdmx.artefact import Artefact
from contexture.sdmx.transcoding.facts import Fact, facts

_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Losses:
    """How much of what is missing, by what it is: `{"name[fr]": 6, "parent": 2}`; in the order of the names."""

    counts: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        """Such as `name[fr] 6, parent 2`: names and numbers, and no content."""
        told = ", ".join(f"{what} {count}" for what, count in self.counts.items())
        return told if len(told) <= _CHARACTERS else f"{told[:_CHARACTERS]}…"


def losses(source: Artefact, result: Artefact) -> Losses:
    """What one document says and the other doesn't.

    Formats have different names for one thing (`assignmentStatus="Mandatory"` became `usage="mandatory"`), so that
    a value that stands there under another name is not lost; a text has to be of the same sort, and in the same
    language, or in none.
    """
    said, kept = facts(source), facts(result)
    lost, new = said - kept, kept - said
    missing = [*_missing_texts(lost, new), *_missing_values(lost, new)]
    return Losses(dict(sorted(Counter(fact.label for fact in missing).items())))


def _missing_texts(lost: Counter[Fact], new: Counter[Fact]) -> Iterable[Fact]:
    # What of a text has no language in one document may have any in the other.
    unlabelled, all_ = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for fact, count in new.items():
        if fact.is_text:
            all_[fact.what, fact.value] += count
            unlabelled[fact.what, fact.value] += 0 if fact.language else count
    for fact in lost.elements():
        if fact.is_text:
            fitting = unlabelled if fact.language else all_
            if fitting[fact.what, fact.value] > 0:
                fitting[fact.what, fact.value] -= 1
            else:
                yield fact


def _missing_values(lost: Counter[Fact], new: Counter[Fact]) -> Iterable[Fact]:
    renamed: Counter[str] = Counter()
    for fact, count in new.items():
        if not fact.is_text:
            renamed[fact.value.casefold()] += count
    for fact in lost.elements():
        if not fact.is_text:
            if renamed[fact.value.casefold()] > 0:
                renamed[fact.value.casefold()] -= 1
            else:
                yield fact
