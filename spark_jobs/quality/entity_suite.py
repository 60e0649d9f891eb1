"""Expectations about the accepted entities of a context broker and their attributes."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.publications import Publication
from spark_jobs.quality.columns import column_names
from spark_jobs.quality.expected import BETWEEN, IN_SET, NOT_NULL, REGEX, UNIQUE, Columns, Expected, in_words, limits
from spark_jobs.quality.topic_names import TOPIC_NAME

# Clocks of brokers and of this machine differ; less than this is no sign of a shadowed or wrong dateModified.
CLOCK_TOLERANCE_SECONDS = 60

# Orion's rule: at most 10 levels of 1 to 50 letters, digits and underscores.
SERVICE_PATH = r"^/([A-Za-z0-9_]{1,50}(/[A-Za-z0-9_]{1,50}){0,9})?$"

_ENTITIES = Columns("entities")


def about_entities(publication: Publication) -> Iterator[Expected]:
    """What holds of entities whatever their attributes are."""
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


def about_attributes(publication: Publication) -> Iterator[Expected]:
    """What the publication says of single attributes."""
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
