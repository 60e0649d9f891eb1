"""What Kafka accepts as the name of a topic."""

from __future__ import annotations

import re

from contexture.errors import RejectedError

MAXIMUM_LENGTH = 249

_LEGAL = re.compile(r"[A-Za-z0-9._-]*")
_SHOWN_CHARACTERS = 80


class TopicNameError(RejectedError):
    """This identity has no topic, or one that Kafka refuses."""


def check_legal(name: str) -> str:
    """The name itself, when Kafka accepts it.

    Raises:
        TopicNameError: the name is empty, `.` or `..`, longer than 249 characters, or holds other characters than
            `A-Z a-z 0-9 . _ -`.
    """
    reason = _illegality(name)
    if reason is None:
        return name
    raise TopicNameError(
        f"the topic name {_shown(name)} {reason}",
        next_step="choose another data model or fixed topics for this publication, or rename the entity in its source",
        topic=name[:MAXIMUM_LENGTH],
        length=len(name),
    )


def _illegality(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in {".", ".."}:
        return "is reserved"
    if len(name) > MAXIMUM_LENGTH:
        return f"has {len(name)} characters; Kafka accepts {MAXIMUM_LENGTH}"
    legal = _LEGAL.match(name)
    if legal is not None and legal.end() < len(name):
        return f"holds {name[legal.end()]!a}; Kafka accepts letters, digits, '.', '_' and '-'"
    return None


def _shown(name: str) -> str:
    return ascii(name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}...")
