"""Expectations about the accepted structures of a registry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from contexture.publications import Publication
from contexture.sources.sdmx.selectors import Selector
from contexture.sources.sdmx.urn import CLASSES, PACKAGES
from spark_jobs.quality.expected import IN_SET, NOT_NULL, REGEX, UNIQUE, Columns, Expected
from spark_jobs.quality.topic_names import TOPIC_NAME

# One or more numbers; of three there may be an extension (SDMX 3.0, semantic versions; 2.1, VersionType).
VERSION = r"^[0-9]+(?:\.[0-9]+)*$|^[0-9]+(?:\.[0-9]+){2}-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$"

# Several of them with commas; nothing where no route selects the structure.
TOPICS = rf"^(?:{TOPIC_NAME}(?:,{TOPIC_NAME})*)?$"

_STRUCTURES = Columns("structures")


def about_structures(publication: Publication) -> Iterator[Expected]:
    """What holds of structures, whatever they are about."""
    yield _STRUCTURES.critical("unique-urn", UNIQUE, "urn", "no two rows are the same structure")
    yield _STRUCTURES.critical("urn-present", NOT_NULL, "urn", "every structure has a URN")
    yield _STRUCTURES.critical("kind-present", NOT_NULL, "kind", "every structure has a kind")
    selectors = [Selector.parse(text) for text in publication.source.select]
    yield from _selected(selectors)
    sentence = "every kind is one of SDMX's information model"
    yield _STRUCTURES.expected("info", "known-kind", IN_SET, "kind", sentence, value_set=sorted(PACKAGES))
    sentence = "every version is made of numbers, such as 1.0 or 2.3.1-draft"
    yield _STRUCTURES.warning("version-syntax", REGEX, "version", sentence, regex=VERSION)
    sentence = "every topic name is legal in Kafka"
    yield _STRUCTURES.critical("topic-name", REGEX, "topics", sentence, regex=TOPICS)


def _selected(selectors: Sequence[Selector]) -> Iterator[Expected]:
    if selectors and all(selector.agencies for selector in selectors):
        agencies = sorted({agency for selector in selectors for agency in selector.agencies})
        sentence = f"every structure is one of {' or '.join(agencies)}"
        pattern = f"^(?:{'|'.join(map(_agency_pattern, agencies))})$"
        yield _STRUCTURES.critical("selected-agency", REGEX, "agency", sentence, regex=pattern)
    if selectors and all(selector.kinds for selector in selectors):
        classes = {kind.rpartition(".")[2] for selector in selectors for kind in selector.kinds}
        kinds = classes | {kind for kind, class_name in CLASSES.items() if class_name in classes}
        sentence = f"every structure is of the kind {' or '.join(sorted(classes))}"
        yield _STRUCTURES.critical("selected-kind", IN_SET, "kind", sentence, value_set=sorted(kinds))


def _agency_pattern(agency: str) -> str:
    # `ECB.*` are the agencies below ECB, without ECB itself.
    below = agency.removesuffix(".*")
    return re.escape(agency) if below == agency else rf"{re.escape(below)}\..+"
