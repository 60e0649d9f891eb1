"""Which expectations a publication has, as data; nothing here needs Great Expectations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from contexture.ngsi.rules.catalogue import REJECTING, RULES, severities
from contexture.publications import Publication
from spark_jobs.quality.columns import column_names
from spark_jobs.quality.expected import Expected
from spark_jobs.quality.own_expectations import own_expectations

# Clocks of brokers and of this machine differ; less than this is no sign of a shadowed or wrong dateModified.
CLOCK_TOLERANCE_SECONDS = 60

# Kafka's rule for topic names; the two names that are folders to a file system are not legal either.
TOPIC_NAME = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$"

# Orion's rule: at most 10 levels of 1 to 50 letters, digits and underscores.
SERVICE_PATH = r"^/([A-Za-z0-9_]{1,50}(/[A-Za-z0-9_]{1,50}){0,9})?$"

UNIQUE = "ExpectColumnValuesToBeUnique"
NOT_NULL = "ExpectColumnValuesToNotBeNull"
IN_SET = "ExpectColumnValuesToBeInSet"
BETWEEN = "ExpectColumnValuesToBeBetween"
REGEX = "ExpectColumnValuesToMatchRegex"


def suite(publication: Publication, *, of_snapshot: bool = True, in_turn: bool = False) -> tuple[Expected, ...]:
    """All expectations of the publication, in the order in which a page shows them.

    Args:
        publication: whose.
        of_snapshot: also those about what one read found as a whole: volume, shares, age, and no entity twice.
        in_turn: rows were notified one after the other, so that an entity may have several.
    """
    is_told_once = of_snapshot and not in_turn
    return (
        *(_about_the_run(publication) if of_snapshot else ()),
        *(expected for expected in _about_entities(publication) if is_told_once or expected.kind != UNIQUE),
        *_about_attributes(publication),
        *own_expectations(publication),
    )


def _about_the_run(publication: Publication) -> Iterator[Expected]:
    quality = publication.quality
    entities = limits(quality.minimum_entities, quality.maximum_entities)
    share, age = quality.max_quarantined_share, quality.fresh_within_seconds
    yield Expected(
        "volume",
        "critical",
        "summary",
        BETWEEN,
        {"column": "source_entities", **entities},
        f"the number of entities in the source is {in_words(entities)}",
    )
    yield Expected(
        "quarantined-share",
        "critical",
        "summary",
        BETWEEN,
        {"column": "quarantined_share", "max_value": share},
        f"row rules refuse at most {share:.4g} of the entities",
    )
    wanted = severities(quality.rules)
    for rule in RULES:
        if rule.name in REJECTING and wanted.get(rule.name) == "error":
            arguments: dict[str, JsonValue] = {"column": rule.name, "max_value": 0}
            yield Expected(rule.name, "critical", "summary", BETWEEN, arguments, rule.description)
    if age is not None:
        yield Expected(
            "freshness",
            "warning",
            "summary",
            BETWEEN,
            {"column": "newest_age_seconds", "max_value": age},
            f"the newest change of the source is at most {age} s old",
        )


def _about_entities(publication: Publication) -> Iterator[Expected]:
    yield _critical("unique-identity", UNIQUE, "identity", "no two rows are the same entity")
    yield _critical("id-present", NOT_NULL, "id", "every entity has an id")
    yield _critical("type-present", NOT_NULL, "type", "every entity has a type")
    if types := publication.source.types:
        sentence = f"every entity is of type {' or '.join(types)}"
        yield _critical("known-type", IN_SET, "type", sentence, value_set=list(types))
    yield _critical(
        "service-path", REGEX, "service_path", "every service path follows the broker's syntax", regex=SERVICE_PATH
    )
    yield _critical("topic-name", REGEX, "topic", "every topic name is legal in Kafka", regex=TOPIC_NAME)
    yield _warning(
        "not-in-the-future",
        BETWEEN,
        "seconds_ahead",
        f"no entity was modified more than {CLOCK_TOLERANCE_SECONDS} s after it was read",
        max_value=CLOCK_TOLERANCE_SECONDS,
    )


def _about_attributes(publication: Publication) -> Iterator[Expected]:
    safe, quality = column_names(publication), publication.quality
    for name in quality.required_attributes:
        sentence = f"every entity has the attribute {name}"
        yield _critical(f"required-attribute:{name}", NOT_NULL, f"type_{safe[name]}", sentence)
    for name, ngsi_type in quality.attribute_types.items():
        sentence = f"the NGSI type of {name} is {ngsi_type}"
        yield _warning(f"attribute-type:{name}", IN_SET, f"type_{safe[name]}", sentence, value_set=[ngsi_type])
    for name, numbers in quality.ranges.items():
        ends = limits(numbers.minimum, numbers.maximum)
        sentence = f"the number in {name} is {in_words(ends)}"
        yield _warning(f"range:{name}", BETWEEN, f"value_{safe[name]}", sentence, **ends)


def _critical(name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
    return Expected(name, "critical", "entities", kind, {"column": column, **kwargs}, description)


def _warning(name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
    return Expected(name, "warning", "entities", kind, {"column": column, **kwargs}, description)


def limits(minimum: float | None, maximum: float | None) -> dict[str, JsonValue]:
    """The arguments of a range; open ends are left out."""
    ends: Iterable[tuple[str, JsonValue]] = (("min_value", minimum), ("max_value", maximum))
    return {name: value for name, value in ends if value is not None}


def in_words(ends: Mapping[str, JsonValue]) -> str:
    """The arguments of a range, as people say it."""
    match _plain(ends.get("min_value")), _plain(ends.get("max_value")):
        case None, maximum:
            return f"at most {maximum}"
        case minimum, None:
            return f"at least {minimum}"
        case minimum, maximum:
            return f"between {minimum} and {maximum}"


def _plain(number: JsonValue) -> JsonValue:
    return int(number) if isinstance(number, float) and number.is_integer() else number
