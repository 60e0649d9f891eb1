"""The expectations of a publication as data: those of every run, of entities, of structures, and its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from pydantic import JsonValue

from contexture.publications import EntityQuality, NgsiPublication, Publication, SdmxPublication
from contexture.publications.checks.quality import COLUMN_ARGUMENTS
from contexture.publications.quality import DEFAULT_MINIMUM, class_name
from contexture.sources.sdmx.selectors import Selector
from contexture.sources.sdmx.urn import CLASSES, PACKAGES
from spark_jobs.quality.columns import column, column_names, condition
from spark_jobs.quality.summary import STRUCTURES, subject_of

Severity = Literal["critical", "warning", "info"]
Frame = Literal["entities", "attributes", "structures", "summary"]

UNIQUE = "ExpectColumnValuesToBeUnique"
NOT_NULL = "ExpectColumnValuesToNotBeNull"
IN_SET = "ExpectColumnValuesToBeInSet"
BETWEEN = "ExpectColumnValuesToBeBetween"
REGEX = "ExpectColumnValuesToMatchRegex"


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation of a publication.

    Attributes:
        name: its name for people and documents, unique in its suite.
        severity: if it fails, critical: nothing is sent; warning: the run is sent and marked; info: it is shown.
        on: the frame it is checked on.
        kind: class name in `great_expectations.expectations`.
        kwargs: the arguments of the class.
        description: the sentence that must be true, for people.
        where: an SQL condition that selects rows of the frame.
        own: whether the publication's author wrote it, so that it may be invalid.
    """

    name: str
    severity: Severity
    on: Frame
    kind: str
    kwargs: Mapping[str, JsonValue] = field(default_factory=dict)
    description: str = ""
    where: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """A frame, for which it builds expectations about single columns."""

    frame: Frame

    def critical(self, name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
        """Builds an expectation that stops a run."""
        return self.expected("critical", name, kind, column, description, **kwargs)

    def warning(self, name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
        """Builds an expectation that marks a run."""
        return self.expected("warning", name, kind, column, description, **kwargs)

    def expected(
        self, severity: Severity, name: str, kind: str, column: str, description: str, **kwargs: JsonValue
    ) -> Expected:
        """Builds an expectation of any severity."""
        return Expected(name, severity, self.frame, kind, {"column": column, **kwargs}, description)


def limits(minimum: float | None, maximum: float | None) -> dict[str, JsonValue]:
    """Returns the arguments of a range, without open ends."""
    ends: Iterable[tuple[str, JsonValue]] = (("min_value", minimum), ("max_value", maximum))
    return {name: value for name, value in ends if value is not None}


def in_words(ends: Mapping[str, JsonValue]) -> str:
    """Describes the arguments of a range in words."""
    match _plain(ends.get("min_value")), _plain(ends.get("max_value")):
        case None, maximum:
            return f"at most {maximum}"
        case minimum, None:
            return f"at least {minimum}"
        case minimum, maximum:
            return f"between {minimum} and {maximum}"


def _plain(number: JsonValue) -> JsonValue:
    return int(number) if isinstance(number, float) and number.is_integer() else number


# `.` and `..` are folders to a file system, and not legal either.
TOPIC_NAME = r"(?!\.{1,2}(?:,|$))[A-Za-z0-9._-]{1,249}"


# The clocks of brokers and of this machine differ; a smaller difference is no sign of a shadowed or wrong dateModified.
CLOCK_TOLERANCE_SECONDS = 60

# Orion's rule: at most 10 levels of 1 to 50 letters, digits and underscores.
SERVICE_PATH = r"^/([A-Za-z0-9_]{1,50}(/[A-Za-z0-9_]{1,50}){0,9})?$"

_ENTITIES = Columns("entities")


def entity_expectations(publication: NgsiPublication) -> Iterator[Expected]:
    """Yields the expectations on entities that are independent of their attributes."""
    yield _ENTITIES.critical("unique-identity", UNIQUE, "identity", "no two rows are the same entity")
    yield _ENTITIES.critical("id-present", NOT_NULL, "id", "every entity has an id")
    yield _ENTITIES.critical("type-present", NOT_NULL, "type", "every entity has a type")
    if types := publication.source.types:
        sentence = f"every entity is of type {' or '.join(types)}"
        yield _ENTITIES.critical("known-type", IN_SET, "type", sentence, value_set=list(types))
    sentence = "every service path follows the broker's syntax"
    yield _ENTITIES.critical("service-path", REGEX, "service_path", sentence, regex=SERVICE_PATH)
    sentence = "every topic name is legal in Kafka"
    yield _ENTITIES.critical("topic-name", REGEX, "topic", sentence, regex=f"^{TOPIC_NAME}$")
    sentence = f"no entity was modified more than {CLOCK_TOLERANCE_SECONDS} s after it was read"
    yield _ENTITIES.warning("not-in-the-future", BETWEEN, "seconds_ahead", sentence, max_value=CLOCK_TOLERANCE_SECONDS)


def attribute_expectations(publication: NgsiPublication) -> Iterator[Expected]:
    """Yields the expectations of the publication on single attributes."""
    safe, quality = column_names(publication), publication.quality
    for name in quality.required_attributes:
        sentence = f"every entity has the attribute {name}"
        yield _ENTITIES.critical(f"required-attribute:{name}", NOT_NULL, f"type_{safe[name]}", sentence)
    for name, ngsi_type in quality.attribute_types.items():
        sentence = f"the NGSI type of {name} is {ngsi_type}"
        yield _ENTITIES.warning(f"attribute-type:{name}", IN_SET, f"type_{safe[name]}", sentence, value_set=[ngsi_type])
    for name, numbers in quality.ranges.items():
        ends = limits(numbers.minimum, numbers.maximum)
        sentence = f"the number in {name} is {in_words(ends)}"
        yield _ENTITIES.warning(f"range:{name}", BETWEEN, f"value_{safe[name]}", sentence, **ends)


def own_expectations(publication: Publication) -> Iterator[Expected]:
    """Yields the items of `quality.expectations`; `severity` is an argument, as in Great Expectations, and critical if
    absent."""
    of_entities = column_names(publication)
    for number, item in enumerate(publication.quality.expectations, start=1):
        # The other frames have no columns that are named after data.
        safe = of_entities if item.on == "entities" else {}
        kwargs = {name: _translated(name, value, safe) for name, value in item.kwargs.items() if name != "severity"}
        yield Expected(
            name=f"own-{number}:{item.name}",
            severity=cast("Severity", item.kwargs.get("severity", "critical")),
            on=cast("Frame", item.on),
            kind=class_name(item.name),
            kwargs=kwargs,
            description=_sentence(item.name, item.kwargs, item.where),
            where=None if item.where is None else condition(item.where, safe),
            own=True,
        )


def _translated(name: str, value: JsonValue, safe: Mapping[str, str]) -> JsonValue:
    if name not in COLUMN_ARGUMENTS:
        return value
    if isinstance(value, list):
        return [column(each, safe) if isinstance(each, str) else each for each in value]
    return column(value, safe) if isinstance(value, str) else value


def _sentence(name: str, kwargs: Mapping[str, JsonValue], where: str | None) -> str:
    arguments = ", ".join(f"{key}: {value}" for key, value in kwargs.items() if key != "severity")
    selected = f" where {where}" if where else ""
    return f"{name}({arguments}){selected}"


DANGLING_SHARE = 0.01
"""The tolerated share: registries resolve references of accepted structures, except those to other registries."""

_SUMMARY = Columns("summary")


def run_expectations(publication: Publication, *, nothing_yet: bool = False) -> Iterator[Expected]:
    """Yields the expectations on a run as a whole: volume, shares, rules about the whole, and age."""
    quality, many = publication.quality, subject_of(publication).frame
    volume = limits(quality.minimum_entities, quality.maximum_entities)
    share = quality.max_quarantined_share
    age = quality.fresh_within_seconds if isinstance(quality, EntityQuality) else None
    sentence = f"the number of {many} in the source is {in_words(volume)}"
    # A publication that names a larger number says that there is something.
    severity: Severity = "warning" if nothing_yet and quality.minimum_entities == DEFAULT_MINIMUM else "critical"
    yield _SUMMARY.expected(severity, "volume", BETWEEN, "in_source", sentence, **volume)
    sentence = f"row rules quarantine at most {share:.4g} of the {many}"
    yield _SUMMARY.critical("quarantined-share", BETWEEN, "quarantined_share", sentence, max_value=share)
    if subject_of(publication) is STRUCTURES:
        sentence = f"at least {1 - share:.4g} of the structures that were requested are accepted"
        yield _SUMMARY.warning("accepted-share", BETWEEN, "accepted_share", sentence, min_value=1 - share)
    yield from _rule_expectations(publication)
    if age is not None:
        sentence = f"the newest change of the source is at most {age} s old"
        yield _SUMMARY.warning("freshness", BETWEEN, "newest_age_seconds", sentence, max_value=age)


def _rule_expectations(publication: Publication) -> Iterator[Expected]:
    subject = subject_of(publication)
    severities = subject.severities(publication.quality.rules)
    for rule in subject.rules:
        severity = severities.get(rule.name) if rule.name in subject.rejecting else None
        if severity == "error":
            yield _SUMMARY.critical(rule.name, BETWEEN, rule.name, rule.description, max_value=0)
        elif severity == "warning" and rule.name == "dangling-reference":
            sentence = f"at most {DANGLING_SHARE:.4g} of the structures refer to something that is not stored"
            yield _SUMMARY.warning(rule.name, BETWEEN, "dangling_share", sentence, max_value=DANGLING_SHARE)
        elif severity == "warning" and subject is STRUCTURES:
            yield _SUMMARY.warning(rule.name, BETWEEN, rule.name, rule.description, max_value=0)


# One or more numbers; three may have an extension (SDMX 3.0, semantic versions; 2.1, VersionType).
VERSION = r"^[0-9]+(?:\.[0-9]+)*$|^[0-9]+(?:\.[0-9]+){2}-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$"

# Several topic names with commas; nothing if no route selects the structure.
TOPICS = rf"^(?:{TOPIC_NAME}(?:,{TOPIC_NAME})*)?$"

_STRUCTURES = Columns("structures")


def structure_expectations(publication: SdmxPublication) -> Iterator[Expected]:
    """Yields the expectations on structures of all kinds."""
    yield _STRUCTURES.critical("unique-urn", UNIQUE, "urn", "no two rows are the same structure")
    yield _STRUCTURES.critical("urn-present", NOT_NULL, "urn", "every structure has a URN")
    yield _STRUCTURES.critical("kind-present", NOT_NULL, "kind", "every structure has a kind")
    selectors = [Selector.parse(text) for text in publication.source.select]
    yield from _selection_expectations(selectors)
    sentence = "every kind is one of SDMX's information model"
    yield _STRUCTURES.expected("info", "known-kind", IN_SET, "kind", sentence, value_set=[*sorted(PACKAGES)])
    sentence = "every version is made of numbers, such as 1.0 or 2.3.1-draft"
    yield _STRUCTURES.warning("version-syntax", REGEX, "version", sentence, regex=VERSION)
    sentence = "every topic name is legal in Kafka"
    yield _STRUCTURES.critical("topic-name", REGEX, "topics", sentence, regex=TOPICS)


def _selection_expectations(selectors: Sequence[Selector]) -> Iterator[Expected]:
    if selectors and all(selector.agencies for selector in selectors):
        agencies = sorted({agency for selector in selectors for agency in selector.agencies})
        sentence = f"every structure is one of {' or '.join(agencies)}"
        pattern = f"^(?:{'|'.join(map(_agency_pattern, agencies))})$"
        yield _STRUCTURES.critical("selected-agency", REGEX, "agency", sentence, regex=pattern)
    if selectors and all(selector.kinds for selector in selectors):
        classes = {kind.rpartition(".")[2] for selector in selectors for kind in selector.kinds}
        kinds = classes | {kind for kind, class_name in CLASSES.items() if class_name in classes}
        sentence = f"every structure is of the kind {' or '.join(sorted(classes))}"
        yield _STRUCTURES.critical("selected-kind", IN_SET, "kind", sentence, value_set=[*sorted(kinds)])


def _agency_pattern(agency: str) -> str:
    # `ECB.*` selects the agencies below ECB, without ECB itself.
    below = agency.removesuffix(".*")
    return re.escape(agency) if below == agency else rf"{re.escape(below)}\..+"


def suite(
    publication: Publication, *, of_snapshot: bool = True, in_turn: bool = False, nothing_yet: bool = False
) -> tuple[Expected, ...]:
    """Returns all expectations of the publication, in the order in which a page shows them.

    Args:
        publication: the publication.
        of_snapshot: includes those about one read as a whole: volume, shares, age, and uniqueness.
        in_turn: the rows are a sequence of changes, so that an entity or a structure may have several.
        nothing_yet: the source is empty, and nothing was ever read from it.
    """
    is_unique = of_snapshot and not in_turn
    return (
        *(run_expectations(publication, nothing_yet=nothing_yet) if of_snapshot else ()),
        *(expected for expected in _row_expectations(publication) if is_unique or expected.kind != UNIQUE),
        *own_expectations(publication),
    )


def _row_expectations(publication: Publication) -> tuple[Expected, ...]:
    if isinstance(publication, SdmxPublication):
        return tuple(structure_expectations(publication))
    entities = NgsiPublication.of(publication)
    return (*entity_expectations(entities), *attribute_expectations(entities))
