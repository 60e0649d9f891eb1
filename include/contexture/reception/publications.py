"""Publications as targets: each with one inbox that lasts as long as the process."""

from __future__ import annotations

from contexture.errors import RetriableError
from contexture.publications import Publication
from contexture.reception.access import Access
from contexture.reception.target import Target
from contexture.storage.home import Storage
from contexture.storage.inbox_files import open_shelf
from contexture.storage.inbox_writer import InboxWriter


def is_notified(publication: Publication) -> bool:
    """Whether a publication takes notifications."""
    return publication.source.kind == "ngsi" and publication.source.mode == "notifications"


class Inboxes:
    """The inboxes of publications, opened when they are first asked for."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._writers: dict[str, InboxWriter] = {}

    def of(self, publication: str) -> InboxWriter:
        """The inbox of a publication.

        Raises:
            RetriableError: its folder can't be made.
        """
        if publication not in self._writers:
            try:
                self._writers[publication] = InboxWriter(open_shelf(self._storage, publication))
            except OSError as error:
                raise RetriableError(
                    f"the inbox of {publication} can't be made: {error.strerror or error}",
                    next_step=f"make room or repair {self._storage.root}",
                ) from error
        return self._writers[publication]

    def close(self) -> None:
        """Keeps what waits, and takes no more."""
        for writer in self._writers.values():
            writer.close()


def target_of(publication: Publication, access: Access, inboxes: Inboxes) -> Target:
    """A publication as the reception sees it.

    Raises:
        RetriableError: its inbox can't be made.
    """
    source = publication.source
    return Target(
        source.service,
        source.service_path,
        access,
        inboxes.of(publication.name),
        types=source.types,
        ids=source.ids,
        api=source.api,
    )
