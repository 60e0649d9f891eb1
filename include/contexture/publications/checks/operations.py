"""What a publication of Contexture's own events may say: it has no source to choose from, and one form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from contexture.publications.fields import PublicationModel
from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.publications.publication import OperationsPublication

Findings = Iterator[ModelProblem]

_KIND = (("source", "kind"),)


FOR_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "": ("name", "description", "schedule"),
    "source": ("kind",),
    "topics": ("naming", "topics", "partitions", "replication_factor", "keep", "config", "max_new_topics"),
    "batches": ("batch_ttl", "batch_retry_intervals"),
    "message": ("format", "envelope"),
    "publish": ("connection", "transaction_records", "transactional_id_prefix", "broker_wait_seconds"),
    "resync": ("on_startup", "on_config_change"),
    "retention": ("archive_days",),
    "notify": ("mail", "notifiers", "published_within_minutes"),
}
"""The keys that mean something for Contexture's own events, by section; all others don't."""


def of_operations(publication: OperationsPublication) -> Findings:
    """A finding for everything that means nothing or can't be for `kind: operations`."""
    for name in type(publication).model_fields:
        section = getattr(publication, name)
        if isinstance(section, PublicationModel):
            yield from _without_meaning(name, section)
    if not publication.topics.topics:
        message = "nothing says where the events go"
        yield ModelProblem(("topics",), message, "add `topics: [NAME]` to the section `topics`", _KIND)
    if publication.publish.shards != 1:
        message = f"`shards: {publication.publish.shards}` means nothing for `kind: operations`: events have one order"
        yield ModelProblem(("publish", "shards"), message, "leave it out", _KIND)


def _without_meaning(name: str, section: PublicationModel) -> Findings:
    for key in section.model_fields_set:
        # A publication that was written out has every default in it.
        default = type(section).model_fields[key].default
        if key not in FOR_OPERATIONS.get(name, ()) and getattr(section, key) != default:
            yield ModelProblem((name, key), f"`{key}` means nothing for `kind: operations`", "leave it out", _KIND)
