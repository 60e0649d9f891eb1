"""The names of attributes, and of the headers they travel in."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from contexture.messages.cloudevents.errors import refused
from contexture.messages.cloudevents.record import DATA, PREFIX

_NAME = re.compile(r"[a-z0-9]+")
_ADVISED_LENGTH = 20
_CACHED = 1024


class AttributeNameWarning(UserWarning):
    """A name is legal, and not what the specification advises: a letter first, and at most 20 characters."""


@lru_cache(_CACHED)
def header_name(name: str) -> str:
    """The header that an attribute travels in, such as `ce_id`.

    Raises:
        CloudEventError: no attribute can have such a name.

    Warns:
        AttributeNameWarning: the name is legal, and against advice; once for each.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refused(name, "is no name of an attribute", next_step="use the letters a to z and digits only")
    if name == DATA:
        raise refused(name, "can't be an attribute", next_step="give the extension another name")
    if len(name) > _ADVISED_LENGTH or name[0].isdigit():
        advice = (
            f"CloudEvents advises names of at most {_ADVISED_LENGTH} characters that begin with a letter: {name[:40]}"
        )
        warnings.warn(advice, AttributeNameWarning, stacklevel=2)
    return PREFIX + name
