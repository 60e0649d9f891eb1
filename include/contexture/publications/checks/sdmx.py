"""What a registry excludes: its transactions have one order, its structures one key, and its names are no entity's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from contexture.publications.delivery import KEY_IDENTITY
from contexture.publications.problems import ModelProblem
from contexture.publications.source import BROKER_ONLY

if TYPE_CHECKING:
    from contexture.publications.publication import Publication

Findings = Iterator[ModelProblem]

_KIND = (("source", "kind"),)
_NAMES = "structures go to `topics`, and by their URNs to those of `routes`"
_WHOLE = "a transaction of the registry is one of Kafka"
_REASONS: Mapping[str, str] = {
    "topics": _NAMES,
    "batches": _WHOLE,
    "publish": _WHOLE,
    "quality": "structures have no attributes",
}
_CONVERTIBLE = re.compile(
    r"application/vnd\.sdmx\.structure\+(?:xml;version=(?:2\.1|3\.[01](?:\.0)?)|json;version=2\.[01](?:\.0)?)"
)


def _keys_without_meaning(publication: Publication) -> Findings:
    for name, reason in _REASONS.items():
        section = getattr(publication, name)
        for key in BROKER_ONLY[name]:
            if key in section.model_fields_set and getattr(section, key) != type(section).model_fields[key].default:
                yield ModelProblem((name, key), f"`{key}` needs `kind: ngsi`: {reason}", "leave it out", _KIND)


def _one_sender(publication: Publication) -> Findings:
    shards = publication.publish.shards
    if shards != 1:
        message = f"`shards: {shards}`: a registry's transactions have one order, so they have one sender"
        yield ModelProblem(("publish", "shards"), message, "leave it out, or write `shards: 1`", _KIND)


def _one_key(publication: Publication) -> Findings:
    if publication.message.key != KEY_IDENTITY:
        message = f"`key: {publication.message.key}`: the key of a structure is its URN"
        yield ModelProblem(("message", "key"), message, "leave it out, or write `key: identity`", _KIND)


def _one_form(publication: Publication) -> Findings:
    if publication.message.media_type is not None:
        message = "`media_type` stands in the wrong section: what the registry writes is what is sent"
        yield ModelProblem(("message", "media_type"), message, "write it as `source.media_type`", _KIND)


def _conversion(publication: Publication) -> Findings:
    media_type = publication.source.media_type
    plain = re.sub(r"[\s\"]", "", media_type or "").lower()
    if publication.message.allow_lossy and plain and not _CONVERTIBLE.fullmatch(plain):
        message = f"`allow_lossy: true`: nothing can be converted into {media_type}"
        hint = "leave it out, or ask for SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0 or 2.1"
        yield ModelProblem(("message", "allow_lossy"), message, hint, (("source", "media_type"),))


def _no_holes(publication: Publication) -> Findings:
    if publication.publish.on_failure == "dead-letter":
        message = "`on_failure: dead-letter` would leave holes in a registry's transactions"
        yield ModelProblem(("publish", "on_failure"), message, "use `on_failure: stop`", _KIND)


_CHECKS: tuple[Callable[[Publication], Findings], ...] = (
    _keys_without_meaning,
    _one_sender,
    _one_key,
    _one_form,
    _conversion,
    _no_holes,
)


def _of_structures(publication: Publication) -> Findings:
    if publication.source.kind == "sdmx":
        for check in _CHECKS:
            yield from check(publication)
    elif publication.topics.routes:
        message = "`routes` needs `kind: sdmx`"
        yield ModelProblem(("topics", "routes"), message, "leave it out: they select structures", _KIND)


STRUCTURE_CHECKS: tuple[Callable[[Publication], Findings], ...] = (_of_structures,)
