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
from contexture.storage.file_tree import FileTree
from contexture.storage.inbox_files import (
    DiskOperations,
    InboxEntry,
    InboxFile,
    LocalInboxFolder,
    decode_file,
    inbox_folder,
)


class InboxReader:
    """The files and entries of one inbox. Files still being written are not among them."""

    def __init__(self, home: FileTree, publication: str) -> None:
        self._home = home
        self._folder = inbox_folder(publication)

    def files(self) -> tuple[InboxFile, ...]:
        """What is there now, in order; none where nothing ever arrived.

        Raises:
            RetriableError: the storage did not answer.
        """
        found = (InboxFile.named(name) for name in self._home.files(self._folder))
        return tuple(sorted((file for file in found if file is not None), key=lambda file: file.order))

    def claim(self) -> InboxClaim:
        """Returns everything that is complete in the inbox now; nothing is written.

        Raises:
            RetriableError: the storage did not respond.
        """
        return InboxClaim(files=tuple(file.name for file in self.files()))

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
            self._home.remove(f"{self._folder}/{file.name}")

    def _read(self, file: InboxFile) -> Iterator[InboxEntry]:
        return decode_file(self._home.read(f"{self._folder}/{file.name}"), file.name)


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

    @property
    def inbox_files(self) -> tuple[InboxFile, ...]:
        """The files.

        Raises:
            DefectError: a name in the list is none of an inbox.
        """
        return tuple(_file(name) for name in self.files)


def read_claim(home: FileTree, path: str) -> InboxClaim:
    """Returns the claim in a file; an empty one where there is none."""
    return InboxClaim.find_file(home, path) or InboxClaim()


def write_claim(home: FileTree, path: str, claim: InboxClaim) -> None:
    """Writes a claim durably.

    Raises:
        RetriableError: it is not stored.
    """
    # What a lost list names would be sent twice, so that it has to outlast a loss of power as the inbox does.
    if isinstance(home.filesystem, fs.LocalFileSystem):
        folder, name = home.path(path).rsplit("/", 1)
        with home.translate_errors(path):
            LocalInboxFolder(DiskOperations(Path(folder))).put(name, claim.to_json())
    else:
        home.write(path, claim.to_json())


def _file(name: str) -> InboxFile:
    file = InboxFile.named(name)
    if file is None:
        raise DefectError(f"the claim names {name!r}, which is not a file of an inbox", next_step="report this")
    return file
