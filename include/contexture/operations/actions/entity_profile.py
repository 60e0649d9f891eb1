"""The profile of sample entities, and the rules that it suggests."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

from contexture.sources.ngsi.entity import ParsedEntity
from contexture.sources.ngsi.rules.values import number

_ENOUGH: Final = 20
"""Values from which a range, an enumeration or a pattern is suggested."""
_FEW: Final = 8
_OFTEN: Final = 5
"""How often each value of an enumeration occurs on average."""
_DIFFERENT: Final = 10
"""Values from which a common pattern is no accident."""
_LONGEST: Final = 40
_RUNS: Final = 12
_NO_TEXT: Final = frozenset({"DateTime", "ISO8601", "Date", "Time", "Relationship"})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_CLASSES: Final = (("[0-9]", re.compile(r"[0-9]")), ("[a-z]", re.compile(r"[a-z]")), ("[A-Z]", re.compile(r"[A-Z]")))


@dataclass(slots=True)
class AttributeProfile:
    """What sample entities have of one attribute.

    Attributes:
        name: in its source.
        entities: how many entities the sample has.
        present: how many of them have the attribute.
        types: its NGSI types, each with its number of entities.
        numbers: how many values are numbers, the smallest and the largest of them.
        texts: values that are texts, each with its number of entities.
        others: values of other kinds: null, true and false, objects, lists.
    """

    name: str
    entities: int = 0
    present: int = 0
    types: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    minimum: float = math.inf
    maximum: float = -math.inf
    texts: Counter[str] = field(default_factory=Counter)
    others: int = 0

    def add(self, attribute: object) -> None:
        """Adds the attribute of one entity."""
        self.present += 1
        member = attribute if isinstance(attribute, dict) else {}
        self.types[str(member.get("type", ""))] += 1
        value = member.get("value")
        magnitude = number(value)
        if magnitude is not None and math.isfinite(magnitude):
            self.numbers += 1
            self.minimum, self.maximum = min(self.minimum, magnitude), max(self.maximum, magnitude)
        elif isinstance(value, str):
            self.texts[value] += 1
        else:
            self.others += 1

    @property
    def missing_share(self) -> float:
        """The share of entities without it, 0 to 1."""
        return 1 - self.present / self.entities

    def __str__(self) -> str:
        types = ", ".join(f"{name} {number}" for name, number in self.types.most_common())
        numbers = f"; {plain(self.minimum)} to {plain(self.maximum)}" if self.numbers else ""
        texts = f"; texts: {len(self.texts)} different" if self.texts else ""
        return f"{self.name}: in {self.present} of {self.entities} ({types}){numbers}{texts}"

    def as_dict(self) -> dict[str, object]:
        """Returns the profile for a JSON document, with the most frequent texts."""
        has_numbers = self.numbers > 0
        return {
            "name": self.name,
            "types": dict(self.types),
            "present": self.present,
            "missing_share": round(self.missing_share, 4),
            "minimum": self.minimum if has_numbers else None,
            "maximum": self.maximum if has_numbers else None,
            "distinct_texts": len(self.texts),
            "frequent_texts": [text[:_LONGEST] for text, _ in self.texts.most_common(_FEW)],
        }


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """A rule that holds for the whole sample.

    Attributes:
        rule: `required`, `range` (value: minimum and maximum), `enumeration` (value: texts) or `pattern` (value: one).
        attribute: its name.
        value: what the rule allows.
        why: what the sample has.
    """

    rule: Literal["required", "range", "enumeration", "pattern"]
    attribute: str
    value: tuple[float, float] | tuple[str, ...] | str | None
    why: str


def profile_entities(entities: Sequence[ParsedEntity]) -> list[AttributeProfile]:
    """Returns the profile of each attribute, by name."""
    found: dict[str, AttributeProfile] = {}
    for entity in entities:
        # Of several instances of one attribute (datasetId) the first counts.
        names = {entity.attribute_name(key).name: attribute for key, attribute in reversed(entity.attributes.items())}
        for name, attribute in names.items():
            found.setdefault(name, AttributeProfile(name, len(entities))).add(attribute)
    return sorted(found.values(), key=lambda each: each.name)


def suggest_rules(profiles: Iterable[AttributeProfile]) -> list[RuleCandidate]:
    """Returns the rules that the sample keeps, by attribute."""
    found: list[RuleCandidate] = []
    for each in profiles:
        if each.present == each.entities:
            found.append(RuleCandidate("required", each.name, None, f"in all {each.entities} sampled entities"))
        if each.numbers == each.present >= _ENOUGH and each.minimum < each.maximum:
            seen = f"sampled: {plain(each.minimum)} to {plain(each.maximum)}"
            found.append(RuleCandidate("range", each.name, _bounds(each), seen))
        if sum(each.texts.values()) == each.present >= _ENOUGH and not _NO_TEXT & set(each.types):
            found += _of_texts(each)
    return found


def _of_texts(profile: AttributeProfile) -> Iterable[RuleCandidate]:
    values = profile.texts
    if max(map(len, values)) > _LONGEST or any(map(_MOMENT.fullmatch, values)):
        return
    if 1 < len(values) <= _FEW and profile.present >= _OFTEN * len(values):
        why = f"sampled: {', '.join(f'{count} times' for _, count in values.most_common())}"
        yield RuleCandidate("enumeration", profile.name, tuple(text for text, _ in values.most_common()), why)
    elif len(values) >= _DIFFERENT and (pattern := common_pattern(values)):
        yield RuleCandidate("pattern", profile.name, pattern, f"all {len(values)} different texts of the sample match")


def plain(value: float) -> str:
    """Returns a number as people write it: 5, not 5.0."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _bounds(profile: AttributeProfile) -> tuple[float, float]:
    """Returns round numbers with room around what was seen, because a sample shows no limits."""
    low, high = profile.minimum, profile.maximum
    if 0 <= low < high <= 1 and (low, high) != (0, 1):
        return 0.0, 1.0
    return (0.0 if low >= 0 else -_round_up(-low)), (0.0 if high <= 0 else _round_up(high))


def _round_up(value: float) -> float:
    """Returns the next of 1, 2, 5, 10, 20, … above one and a half times the value."""
    wanted = 1.5 * value
    scale = 10.0 ** math.floor(math.log10(wanted))
    return next(step * scale for step in (1, 2, 5, 10) if step * scale >= wanted)


def common_pattern(texts: Iterable[str]) -> str | None:
    """Returns the regular expression that all texts match by their runs of digits, letters and signs; None without one.

    Words alone, which would match by accident, have none.
    """
    shapes = [[(name, len(list(run))) for name, run in groupby(map(_class_of, text))] for text in texts]
    names = [name for name, _ in shapes[0]]
    if not 1 < len(names) <= _RUNS or any([name for name, _ in shape] != names for shape in shapes):
        return None
    if not any(name == "[0-9]" for name in names):
        return None
    lengths = [{shape[place][1] for shape in shapes} for place in range(len(names))]
    return f"^{''.join(f'{name}{_count(found)}' for name, found in zip(names, lengths, strict=True))}$"


def _class_of(sign: str) -> str:
    return next((name for name, pattern in _CLASSES if pattern.match(sign)), re.escape(sign))


def _count(lengths: set[int]) -> str:
    low, high = min(lengths), max(lengths)
    return f"{{{low},{high}}}" if low < high else "" if low == 1 else f"{{{low}}}"
