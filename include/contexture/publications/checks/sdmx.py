"""What a registry excludes: its transactions have one order, its structures one key, and its names are no entity's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.publications.publication import SdmxPublication

Findings = Iterator[ModelProblem]

_KIND = (("source", "kind"),)
_CONVERTIBLE = re.compile(
    r"application/vnd\.sdmx\.structure\+(?:xml;version=(?:2\.1|3\.[01](?:\.0)?)|json;version=2\.[01](?:\.0)?)"
)


def _one_sender(publication: SdmxPublication) -> Findings:
    shards = publication.publish.shards
    if shards != 1:
        message = f"`shards: {shards}`: a registry's transactions have one order, so they have one sender"
        yield ModelProblem(("publish", "shards"), message, "leave it out, or write `shards: 1`", _KIND)


def _conversion(publication: SdmxPublication) -> Findings:
    media_type = publication.source.media_type
    plain = re.sub(r"[\s\"]", "", media_type or "").lower()
    if publication.message.allow_lossy and plain and not _CONVERTIBLE.fullmatch(plain):
        message = f"`allow_lossy: true`: nothing can be converted into {media_type}"
        hint = "leave it out, or ask for SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0 or 2.1"
        yield ModelProblem(("message", "allow_lossy"), message, hint, (("source", "media_type"),))


def _no_holes(publication: SdmxPublication) -> Findings:
    if publication.publish.on_failure == "dead-letter":
        message = "`on_failure: dead-letter` would leave holes in a registry's transactions"
        yield ModelProblem(("publish", "on_failure"), message, "use `on_failure: stop`", _KIND)


REGISTRY_CHECKS: tuple[Callable[[SdmxPublication], Findings], ...] = (
    _one_sender,
    _conversion,
    _no_holes,
)
