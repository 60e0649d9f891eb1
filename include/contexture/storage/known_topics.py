"""Which topics of Kafka a publication has sent to, by Kafka's own ids: one that was removed is noticed by them."""

from __future__ import annotations

from collections.abc import Mapping

from contexture.storage.document import Versioned
from contexture.storage.layout import PublicationFolder
from contexture.storage.manifest import Manifest
from contexture.storage.storage import Storage


class KnownTopics(Versioned):
    """Topics as they were when records were sent to them.

    Attributes:
        cluster: id of the Kafka cluster; another one has other topics.
        ids: Kafka's ids by the names of the topics.
    """

    format: int = 1
    cluster: str | None
    ids: Mapping[str, str] = {}


def known_topics(storage: Storage, publication: str) -> KnownTopics | None:
    """Returns the topics that the runs of a publication have sent to; None before the first."""
    return _read(storage, PublicationFolder(publication).known_topics())


def write_known_topics(storage: Storage, publication: str, known: KnownTopics) -> None:
    """Writes them, where they differ from what is stored."""
    if known != known_topics(storage, publication):
        storage.write(PublicationFolder(publication).known_topics(), known.to_json())


def approved_topics(storage: Storage, manifest: Manifest) -> KnownTopics | None:
    """Returns the topics of an outbox as they were when it was approved; None where that was not recorded."""
    return _read(storage, PublicationFolder(manifest.publication).approved_topics(manifest.outbox))


def write_approved_topics(storage: Storage, manifest: Manifest, topics: KnownTopics) -> None:
    """Writes them, unless they are stored: an outbox that is approved again may have been sent in part."""
    path = PublicationFolder(manifest.publication).approved_topics(manifest.outbox)
    if not storage.exists(path):
        storage.write(path, topics.to_json())


def _read(storage: Storage, path: str) -> KnownTopics | None:
    try:
        return KnownTopics.from_file(storage, path)
    except FileNotFoundError:
        return None
