"""Reading a publication's inbox, and the claim of a run: what it read is removed when its outbox is concluded.

landing/<run>/inbox.json      written with the rows made of the files; a retry of the run finds both
    outbox/<id>/inbox.json        the same list once an outbox is made of them: now they belong to that outbox

Concluding the outbox removes the files. An outbox that is rejected or abandoned leaves them, so that the next run takes
them, and whatever arrived meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from pathlib import Path

from pyarrow import fs

from contexture.errors import DefectError
from contexture.storage.documents import Versioned
from contexture.storage.home import Storage
from contexture.storage.inbox_files import (
    DiskOperations,
    InboxEntry,
    InboxFile,
    LocalInboxFolder,
    decode_file,
    inbox_folder,
)
from contexture.storage.publication_store import PublicationFolder


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


class InboxClaim(Versioned):
    """The names of an inbox's files, in order."""

    format: int = 1
    files: tuple[str, ...] = ()

    @classmethod
    def of_now(cls, storage: Storage, publication: str) -> InboxClaim:
        """Everything that is complete in the inbox now; nothing is written.

        Raises:
            RetriableError: the storage did not answer.
        """
        return cls(files=tuple(file.name for file in InboxReader(storage, publication).files()))

    @property
    def inbox_files(self) -> tuple[InboxFile, ...]:
        """The files.

        Raises:
            DefectError: a name in the list is none of an inbox.
        """
        return tuple(_file(name) for name in self.files)


def keep_claim(storage: Storage, publication: str, run: str, claim: InboxClaim) -> None:
    """Puts a claim into the run's landing folder, for good.

    Raises:
        RetriableError: it is not there.
    """
    _put(storage, PublicationFolder(publication).landing_claim(run), claim)


def transfer_claim(storage: Storage, publication: str, run: str, outbox: str) -> None:
    """Gives what a run has claimed to the outbox that is made of it; nothing happens when it claimed nothing.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    folder = PublicationFolder(publication)
    claim = _read(storage, folder.landing_claim(run))
    if claim.files:
        _put(storage, folder.outbox_claim(outbox), claim)


def release_claim(storage: Storage, publication: str, outbox: str) -> None:
    """Removes from the inbox what is in Kafka by way of an outbox.

    Harmless when it was done before, and when it was not done to its end.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    claim = _read(storage, PublicationFolder(publication).outbox_claim(outbox))
    InboxReader(storage, publication).remove(claim.inbox_files)


def _read(storage: Storage, path: str) -> InboxClaim:
    try:
        return InboxClaim.from_file(storage, path)
    except FileNotFoundError:
        return InboxClaim()


def _put(storage: Storage, path: str, claim: InboxClaim) -> None:
    # What a lost list names would be told twice, so that it has to outlast a loss of power as the inbox does.
    if isinstance(storage.filesystem, fs.LocalFileSystem):
        folder, name = storage.path(path).rsplit("/", 1)
        with storage.translating(path):
            LocalInboxFolder(DiskOperations(Path(folder))).put(name, claim.to_json())
    else:
        storage.write(path, claim.to_json())


def _file(name: str) -> InboxFile:
    file = InboxFile.named(name)
    if file is None:
        raise DefectError(f"the claim names {name!r}, which is no file of an inbox", next_step="report this")
    return file
