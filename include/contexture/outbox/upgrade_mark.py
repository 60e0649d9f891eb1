"""What keeps runs out while the files of a publication are upgraded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from contexture.errors import RetriableError
from contexture.outbox.document import Versioned
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.storage import Storage


class UpgradeMark(Versioned):
    """Says that an upgrade is under way, since when."""

    format: int = 1
    began_at: datetime


@contextmanager
def upgrading(storage: Storage, folder: PublicationFolder) -> Iterator[None]:
    """Within the block neither state nor the story of an outbox moves on; a killed process leaves the mark."""
    storage.write(folder.upgrading(), UpgradeMark(began_at=datetime.now(UTC)).to_json())
    try:
        yield
    finally:
        storage.remove(folder.upgrading())


def refuse_while_upgrading(storage: Storage, folder: PublicationFolder) -> None:
    """Lets nothing move on while an upgrade is under way.

    Raises:
        RetriableError: one is, or was killed.
    """
    if storage.exists(folder.upgrading()):
        raise RetriableError(
            f"the files of {folder.publication} are being upgraded",
            next_step="wait for `contexture upgrade` to end; where it was killed, call it again: it goes on",
            publication=folder.publication,
        )
