"""How older releases of Cygnus named topics, for consumers that still read those names.

up to 1.2      parts joined by `_`, other characters than `A-Z a-z 0-9 . -` written `_`, no root path, lower case,
               at most 64 characters
1.3 and 1.4    joined by `xffff`, but only `=` and `x` encoded: every name with a path is illegal
1.5 to 1.9     the names of today in lower case
since 1.10     the names of today
"""

from __future__ import annotations

import re
from collections.abc import Callable

from contexture.events import ContextIdentity
from contexture.topics.cygnus import CONCATENATOR
from contexture.topics.legality import TopicNameError, check_legal
from contexture.topics.parts import name_parts

NameMaker = Callable[[ContextIdentity, str | None], str]

LEGACY_LIMIT = 64
LAST_LEGACY, LAST_PARTIAL, LAST_LOWER_CASE = (1, 2), (1, 4), (1, 9)

_NOT_LEGACY = re.compile("[^A-Za-z0-9.-]")
_PARTIAL = re.compile("=|x(?=[0-9A-Fa-f]{4})")


def release(version: str) -> tuple[int, int]:
    """Major and minor number of a version such as `1.9.0`."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def legacy_names(data_model: str) -> NameMaker:
    """Names as Cygnus made them up to 1.2."""

    def name(identity: ContextIdentity, attribute: str | None) -> str:
        service, *others = name_parts(data_model, identity, attribute)
        if others:
            others[0] = others[0].removeprefix("/")
        return _short_enough("_".join(_NOT_LEGACY.sub("_", part) for part in (service, *filter(None, others))).lower())

    return name


def partial_names(data_model: str) -> NameMaker:
    """Names as Cygnus made them in 1.3 and 1.4; most are illegal, and refused here as brokers refused them."""

    def name(identity: ContextIdentity, attribute: str | None) -> str:
        service, *others = name_parts(data_model, identity, attribute)
        parts = (service, *others[:1], *filter(None, others[1:]))
        return _taken_by_brokers(CONCATENATOR.join(_PARTIAL.sub(_partially, part) for part in parts))

    return name


def _taken_by_brokers(name: str) -> str:
    try:
        return check_legal(name)
    except TopicNameError as error:
        raise TopicNameError(
            f"{error.message}; brokers refused most names of Cygnus 1.3 and 1.4",
            next_step="leave cygnus_version out, or write the release whose topics consumers read",
            **error.context,
        ) from None


def _partially(match: re.Match[str]) -> str:
    return "xx" if match[0] == "x" else CONCATENATOR


def _short_enough(name: str) -> str:
    if len(name) <= LEGACY_LIMIT:
        return name
    raise TopicNameError(
        f"the topic name {name[:LEGACY_LIMIT]}... has {len(name)} characters; Cygnus up to 1.2 refused more than "
        f"{LEGACY_LIMIT}",
        next_step="use naming cygnus or injective for this publication, or rename the entity in its source",
        length=len(name),
    )
