"""The record of an event in Kafka: its headers, key and value, and the names that are used in them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from contexture.errors import RejectedError


class CloudEventError(RejectedError):
    """This is no event by the CloudEvents specification; `attribute` names the part that isn't right."""

    @property
    def attribute(self) -> str:
        """Returns the attribute, or `data`, `key`, `value`, `headers`."""
        return str(self.context.get("attribute", ""))


def refused(
    attribute: object, problem: str, *, next_step: str = "correct it where the event is made"
) -> CloudEventError:
    """Returns the error for a problem of an attribute, as in `id is missing`."""
    name = str(attribute).encode(errors="backslashreplace").decode()[:100]
    return CloudEventError(f"CloudEvents: {name!r} {problem}", next_step=next_step, attribute=name)


Mode = Literal["binary", "structured"]
Event = Mapping[str, object]
"""An event as in the CloudEvents JSON format. Without the member `data` (or `data_base64`) it has no data; `data: None`
is the JSON value null, which is data. `data` may also be bytes, which are taken as they are."""

KeyMapper = Callable[[Event], "str | bytes | None"]

PREFIX: Final = "ce_"
CONTENT_TYPE: Final = "content-type"
FAMILY: Final = "application/cloudevents"
STRUCTURED_JSON: Final = "application/cloudevents+json"
SPEC_VERSION: Final = "1.0"

DATA: Final = "data"
DATA_BASE64: Final = "data_base64"
DATA_MEMBERS: Final = frozenset((DATA, DATA_BASE64))
REQUIRED: Final = ("specversion", "id", "source", "type")


class NoData(Enum):
    """The absence of data in an event, where `None` is the JSON value null."""

    NO_DATA = 0

    def __repr__(self) -> str:
        return self.name


NO_DATA: Final = NoData.NO_DATA


class Record(NamedTuple):
    """One Kafka record, fit for `producer.produce(topic, value, key, headers=headers)` of confluent-kafka.

    Attributes:
        headers: names and bytes, in the order in which they are sent.
        value: None is a tombstone, which compaction takes for the deletion of the key; empty bytes are none.
        key: None where the record has no key.
    """

    headers: list[tuple[str, bytes]]
    value: bytes | None
    key: bytes | None


_NAME = re.compile(r"[a-z0-9]+")
_ADVISED_LENGTH = 20
_CACHED = 1024


class AttributeNameWarning(UserWarning):
    """A name is legal, and not what the specification advises: a letter first, and at most 20 characters."""


@lru_cache(_CACHED)
def header_name(name: str) -> str:
    """Returns the header of an attribute, such as `ce_id`.

    Raises:
        CloudEventError: no attribute can have such a name.

    Warns:
        AttributeNameWarning: the name is legal, and against advice; once for each.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refused(name, "is no name of an attribute", next_step="use the letters a to z and digits only")
    if name == DATA:
        raise refused(name, "cannot be an attribute", next_step="give the extension another name")
    if len(name) > _ADVISED_LENGTH or name[0].isdigit():
        advice = (
            f"CloudEvents advises names of at most {_ADVISED_LENGTH} characters that begin with a letter: {name[:40]}"
        )
        warnings.warn(advice, AttributeNameWarning, stacklevel=2)
    return PREFIX + name
