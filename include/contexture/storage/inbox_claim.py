"""Which files of its inbox a run has taken over: a list of names, while the files stay where they are.

    landing/<run>/inbox.json      written with the rows made of the files; a retry of the run finds both
    outbox/<id>/inbox.json        the same list once an outbox is made of them: now they belong to that outbox

Concluding the outbox removes the files. An outbox that is rejected or abandoned leaves them, so that the next run takes
them, and whatever arrived meanwhile.
"""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs

from contexture.errors import DefectError
from contexture.storage.document import Versioned
from contexture.storage.inbox_files import DiskSteps, InboxFile, LocalShelf
from contexture.storage.inbox_reader import InboxReader
from contexture.storage.layout import PublicationFolder
from contexture.storage.storage import Storage


class Claim(Versioned):
    """The names of an inbox's files, in order."""

    format: int = 1
    files: tuple[str, ...] = ()

    @classmethod
    def of_now(cls, storage: Storage, publication: str) -> Claim:
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


def keep_claim(storage: Storage, publication: str, run: str, claim: Claim) -> None:
    """Puts a claim into the run's landing folder, for good.

    Raises:
        RetriableError: it is not there.
    """
    _put(storage, PublicationFolder(publication).landing_claim(run), claim)


def hand_over(storage: Storage, publication: str, run: str, outbox: str) -> None:
    """Gives what a run has claimed to the outbox that is made of it; nothing happens when it claimed nothing.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    folder = PublicationFolder(publication)
    claim = _read(storage, folder.landing_claim(run))
    if claim.files:
        _put(storage, folder.outbox_claim(outbox), claim)


def release(storage: Storage, publication: str, outbox: str) -> None:
    """Removes from the inbox what is in Kafka by way of an outbox.

    Harmless when it was done before, and when it was not done to its end.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    claim = _read(storage, PublicationFolder(publication).outbox_claim(outbox))
    InboxReader(storage, publication).remove(claim.inbox_files)


def _read(storage: Storage, path: str) -> Claim:
    try:
        return Claim.from_file(storage, path)
    except FileNotFoundError:
        return Claim()


def _put(storage: Storage, path: str, claim: Claim) -> None:
    # What a lost list names would be told twice, so that it has to outlast a loss of power as the inbox does.
    if isinstance(storage.filesystem, fs.LocalFileSystem):
        folder, name = storage.path(path).rsplit("/", 1)
        with storage.translating(path):
            LocalShelf(DiskSteps(Path(folder))).put(name, claim.to_json())
    else:
        storage.write(path, claim.to_json())


def _file(name: str) -> InboxFile:
    file = InboxFile.named(name)
    if file is None:
        raise DefectError(f"the claim names {name!r}, which is no file of an inbox", next_step="report this")
    return file
