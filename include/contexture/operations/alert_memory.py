"""What people were told of a publication already, so that they are not told the same every few minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from pydantic import ValidationError

from contexture.operations.failure_mail import Failure
from contexture.storage.home import Storage
from contexture.storage.manifests import Document
from contexture.storage.publication_store import PublicationFolder

QUIET: Final = timedelta(hours=1)
"""How long the same is not told again."""


class Told(Document):
    """The last alert of a kind.

    Attributes:
        run_id: the run it was about.
        about: digest of what happened.
        at: when.
        sent: whether anybody was told; what heals itself is only noted.
    """

    run_id: str
    about: str
    at: datetime
    sent: bool


class AlertMemory:
    """Remembers the last alert of each kind of one publication, on storage."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self._storage = storage
        self._folder = PublicationFolder(publication)

    def is_due(self, failure: Failure) -> bool:
        """Whether somebody should be told.

        Not again within the hour of the same run (its shards fail one after the other, for the same reason) or of the
        same happening in later runs. And not once of what heals itself, only when that happens again to another run.
        Each question is told, once.
        """
        before = self._last(failure)
        if before is not None and before.sent and _is_same(before, failure):
            return False
        if failure.kind.heals_itself:
            return before is not None and before.run_id != failure.run_id
        return True

    def keep(self, failure: Failure, *, sent: bool) -> None:
        """Remembers an alert; one that was sent is not taken for a mere note of a later one."""
        if not sent and self._last(failure) is not None:
            return
        told = Told(run_id=failure.run_id, about=_digest(failure), at=failure.at, sent=sent)
        self._storage.write(self._folder.alert(failure.kind), told.to_json())

    def _last(self, failure: Failure) -> Told | None:
        try:
            told = Told.model_validate_json(self._storage.read(self._folder.alert(failure.kind)))
        except (FileNotFoundError, ValidationError):
            return None
        return told if failure.at - told.at < QUIET else None


def _is_same(told: Told, failure: Failure) -> bool:
    same_run = told.run_id == failure.run_id and not failure.kind.is_told_each_time
    return same_run or told.about == _digest(failure)


def _digest(failure: Failure) -> str:
    return sha256((failure.about or failure.happened).encode()).hexdigest()[:20]
