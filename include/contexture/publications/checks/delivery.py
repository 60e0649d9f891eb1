"""What the producer's choices exclude: encoder, partition key, partitioner, and messages of whole transactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from contexture.publications.checks.records import IDENTITY_FIELDS, Findings
from contexture.publications.delivery import KEY_IDENTITY
from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.publications.publication import NgsiPublication, Publication, SdmxPublication

_URN_PARTS: Final = frozenset({"agency", "class"})
_UNSPLITTABLE = re.compile(r"\bedi\b|xlsx|spreadsheetml", re.IGNORECASE)


def _encoder(publication: Publication) -> Findings:
    message = publication.message
    if message.encoder is not None and message.envelope != "none":
        what = (
            f"`encoder: {message.encoder}` with `envelope: {message.envelope}`: datacontenttype would name another form"
        )
        yield ModelProblem(
            ("message", "encoder"), what, "leave it out, or use `envelope: none`", (("message", "envelope"),)
        )


def _partition_key(publication: NgsiPublication | SdmxPublication) -> Findings:
    message = publication.message
    if message.partition_key != "none" and message.envelope == "none":
        yield ModelProblem(
            ("message", "partition_key"),
            f"`partition_key: {message.partition_key}` is an attribute of CloudEvents, and there is no envelope",
            "set `envelope: cloudevents-binary` or `cloudevents-structured`, or leave it out",
            (("message", "envelope"),),
        )


def _fixed_partition(publication: Publication) -> Findings:
    partitioner, partitions = publication.publish.partitioner, publication.topics.partitions
    if partitioner.isdecimal() and int(partitioner) >= partitions:
        yield ModelProblem(
            ("publish", "partitioner"),
            f"`partitioner: {partitioner}`: new topics have {partitions} partitions, counted from 0",
            "write a smaller number, or more `topics: {partitions: …}`",
            (("topics", "partitions"),),
        )


def _partition_by_field(publication: NgsiPublication) -> Findings:
    partitioner, key = publication.publish.partitioner, publication.message.key
    if partitioner in IDENTITY_FIELDS and key != KEY_IDENTITY:
        yield ModelProblem(
            ("publish", "partitioner"),
            f"`partitioner: {partitioner}` reads the identity, which is not in `key: {key}`",
            f"use `key: identity`; without a partitioner, `key: {partitioner}` decides the partition already",
            (("message", "key"),),
        )


def _bundle(publication: SdmxPublication) -> Findings:
    message, topics, partitioner = publication.message, publication.topics, publication.publish.partitioner
    if message.bundle == "artefact":
        return
    bundle, hint = ("message", "bundle"), "use `bundle: artefact`"
    if topics.keep == "latest":
        what = (
            "`bundle: transaction` with `keep: latest`: a message of several structures has no key that a later one has"
        )
        yield ModelProblem(bundle, what, f"{hint}, or `topics: {{keep: history}}`", (("topics", "keep"),))
    if topics.partitions > 1 and not partitioner.isdecimal():
        what = (
            f"`bundle: transaction` with {topics.partitions} partitions: messages and deletions would lose their order"
        )
        involved = (("topics", "partitions"), ("publish", "partitioner"))
        yield ModelProblem(bundle, what, "use one partition, or a number as `publish.partitioner`", involved)
    if partitioner in _URN_PARTS:
        what = f"`partitioner: {partitioner}` is a part of the URN, and a message of several structures has none"
        yield ModelProblem(("publish", "partitioner"), what, "leave it out, or write a number", (bundle,))
    if message.envelope != "none":
        what = f"`bundle: transaction` with `envelope: {message.envelope}`: an event is about one structure"
        yield ModelProblem(bundle, what, f"{hint}, or `envelope: none`", (("message", "envelope"),))
    if message.allow_lossy:
        what = "`bundle: transaction` with `allow_lossy: true`: headers name what one structure lost"
        yield ModelProblem(bundle, what, f"{hint}, or leave `allow_lossy` out", (("message", "allow_lossy"),))
    if publication.source.registrations:
        what = "`bundle: transaction` with `registrations: true`: a structure message holds no data registrations"
        yield ModelProblem(bundle, what, f"{hint}, or leave `registrations` out", (("source", "registrations"),))
    media_type = publication.source.media_type or ""
    if _UNSPLITTABLE.search(media_type):
        what = f"`bundle: transaction`: messages in {media_type} cannot be joined"
        yield ModelProblem(bundle, what, f"{hint}, or a format of SDMX-ML or JSON", (("source", "media_type"),))


DELIVERY_OF_ENTITIES: tuple[Callable[[NgsiPublication], Findings], ...] = (
    _encoder,
    _partition_key,
    _fixed_partition,
    _partition_by_field,
)
DELIVERY_OF_STRUCTURES: tuple[Callable[[SdmxPublication], Findings], ...] = (
    _encoder,
    _partition_key,
    _fixed_partition,
    _bundle,
)
