"""Reading a publication's inbox, and taking out of it what a run has taken over (see `inbox_claim`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from contexture.storage.inbox_entry import InboxEntry, decode_file
from contexture.storage.inbox_files import InboxFile, inbox_folder
from contexture.storage.storage import Storage


class InboxReader:
    """The files and entries of one inbox. Files still being written are not among them."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self._storage = storage
        self._folder = inbox_folder(publication)

    def files(self) -> tuple[InboxFile, ...]:
        """What is there now, in order; none where nothing ever arrived.

        Raises:
            RetriableError: the storage did not answer.
        """
        found = (InboxFile.named(name) for name in self._storage.files(self._folder))
        return tuple(sorted((file for file in found if file is not None), key=lambda file: file.order))

    def entries(self, files: Iterable[InboxFile]) -> Iterator[InboxEntry]:
        """The entries of these files by (received_at, sequence, writer), as one stream.

        Files of several writers overlap in time; as many are held in memory at once as do.

        Raises:
            RetriableError: the storage did not answer.
            FileNotFoundError: a file was removed meanwhile.
            ConfigurationError: a file is damaged.
        """
        ahead = sorted(files, key=lambda file: file.order, reverse=True)
        heap: list[tuple[tuple[int, int, str], InboxEntry, Iterator[InboxEntry]]] = []
        while heap or ahead:
            while ahead and (not heap or ahead[-1].order <= heap[0][0]):
                file = ahead.pop()
                _push(heap, file.writer, self._read(file))
            if heap:
                (_, _, writer), entry, rest = heappop(heap)
                yield entry
                _push(heap, writer, rest)

    def remove(self, files: Iterable[InboxFile]) -> None:
        """Takes files out; those that are gone already are passed over.

        Raises:
            RetriableError: the storage did not answer; calling it again goes on.
        """
        for file in files:
            self._storage.remove(f"{self._folder}/{file.name}")

    def _read(self, file: InboxFile) -> Iterator[InboxEntry]:
        return decode_file(self._storage.read(f"{self._folder}/{file.name}"), file.name)


def _push(
    heap: list[tuple[tuple[int, int, str], InboxEntry, Iterator[InboxEntry]]],
    writer: str,
    rest: Iterator[InboxEntry],
) -> None:
    entry = next(rest, None)
    if entry is not None:
        heappush(heap, ((entry.received_at_us, entry.sequence, writer), entry, rest))
