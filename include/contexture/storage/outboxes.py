"""The status of an outbox: prepared, approved, and one of three ends.

    prepared ──► approved ──► concluded
        │            │
        ▼            ▼
     rejected    abandoned

An outbox at its end never changes again. Every change records when and why it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from contexture.errors import ConfigurationError, DefectError
from contexture.storage.documents import StoredDocument, Versioned
from contexture.storage.file_tree import FileTree
from contexture.storage.manifests import Manifest
from contexture.storage.paths import PublicationPaths

Status = Literal["prepared", "approved", "concluded", "rejected", "abandoned"]

ALLOWED: dict[Status, frozenset[Status]] = {
    "prepared": frozenset({"approved", "rejected", "abandoned"}),
    "approved": frozenset({"concluded", "abandoned"}),
    "concluded": frozenset(),
    "rejected": frozenset(),
    "abandoned": frozenset(),
}
ENDS: frozenset[Status] = frozenset(status for status, following in ALLOWED.items() if not following)

_Kind = TypeVar("_Kind", bound=StoredDocument)


class StatusChange(StoredDocument):
    status: Status
    at: datetime
    reason: str


class OutboxStatus(Versioned):
    """The status changes of one outbox; the last one is its status.

    `attempts` is read from documents of older versions and no longer counted: see `contexture.storage.delivery`.
    """

    format: int = 1
    outbox: str
    sequence: int
    steps: tuple[StatusChange, ...] = Field(min_length=1)
    attempts: int = 0

    @property
    def status(self) -> Status:
        return self.steps[-1].status


class Outboxes:
    def __init__(self, home: FileTree, publication: str) -> None:
        self.publication = publication
        self._home = home
        self._paths = PublicationPaths(publication)

    def manifest(self, outbox: str) -> Manifest:
        """The manifest of an outbox.

        Raises:
            ConfigurationError: there is no such outbox.
            DefectError: its document is not one of ours.
        """
        return self._document(Manifest, self._paths.manifest(outbox), outbox)

    def status(self, outbox: str) -> OutboxStatus:
        """Returns the status of an outbox.

        Raises:
            ConfigurationError: there is no such outbox.
        """
        return self._document(OutboxStatus, self._paths.status(outbox), outbox)

    def is_of_backfill(self, outbox: str) -> bool:
        """Returns whether an outbox belongs to a backfill: other runs neither send it nor wait for it."""
        return self.manifest(outbox).mode == "backfill"

    def is_known_of_backfill(self, outbox: str) -> bool:
        """Returns the same, but false where the manifest is damaged, because such an outbox can only be abandoned."""
        try:
            return self.is_of_backfill(outbox)
        except (ConfigurationError, DefectError):
            return False

    def prepared(self, manifest: Manifest) -> OutboxStatus:
        """Puts a new outbox on the list. Preparing it again leaves its story as it is."""
        if self._home.exists(self._paths.status(manifest.outbox)):
            return self.status(manifest.outbox)
        step = StatusChange(status="prepared", at=_now(), reason=f"run {manifest.run}")
        status = OutboxStatus(outbox=manifest.outbox, sequence=manifest.sequence, steps=(step,))
        self._home.write(self._marker(status), status.to_json())
        return self._write(status)

    def set_status(self, outbox: str, to: Status, *, reason: str) -> OutboxStatus:
        """Sets the status of an outbox; setting the one that it has changes nothing.

        Raises:
            ConfigurationError: its status does not allow this one.
        """
        status = self.check_transition(outbox, to)
        if status.status == to:
            self._forget_ended(status)
            return status
        moved = status.model_copy(update={"steps": (*status.steps, StatusChange(status=to, at=_now(), reason=reason))})
        self._write(moved)
        self._forget_ended(moved)
        return moved

    def check_transition(self, outbox: str, to: Status) -> OutboxStatus:
        """Returns the status of an outbox whose status can become `to`, or is that already.

        Raises:
            ConfigurationError: its status does not allow this one.
        """
        status = self.status(outbox)
        if status.status == to or to in ALLOWED[status.status]:
            return status
        raise ConfigurationError(
            f"outbox {outbox} is {status.status} and cannot become {to}",
            next_step=f"check it with: contexture outbox show {outbox}",
            outbox=outbox,
        )

    def pending(self) -> list[OutboxStatus]:
        """Outboxes that are prepared or approved, in order of sequence."""
        return [status for status in self._marked() if status.status not in ENDS]

    def abandoned(self) -> list[OutboxStatus]:
        """Abandoned outboxes whose senders may be alive: no later outbox of a run that reads was concluded since."""
        return [status for status in self._marked() if status.status == "abandoned"]

    def _marked(self) -> Iterator[OutboxStatus]:
        markers = self._home.files(self._paths.pending(), ".json")
        names = (marker.split("-", 1)[1].removesuffix(".json") for marker in markers)
        # The marker is written first: without a status, preparing has not ended and its retry will end it.
        return (self.status(name) for name in names if self.has_status(name))

    def names(self) -> list[str]:
        """Returns the ids of all outboxes that retention has left, complete or not, sorted."""
        return self._home.folders(self._paths.outboxes())

    def all(self) -> list[OutboxStatus]:
        """Every outbox that retention has left, in order of sequence."""
        found = [self.status(name) for name in self.names() if self.has_status(name)]
        return sorted(found, key=lambda status: status.sequence)

    def has_status(self, outbox: str) -> bool:
        """Returns whether the outbox was prepared to its end."""
        return self._home.exists(self._paths.status(outbox))

    def _marker(self, status: OutboxStatus) -> str:
        return self._paths.pending_marker(status.sequence, status.outbox)

    def _forget_ended(self, status: OutboxStatus) -> None:
        """Removes the marker of an outbox at its end; that of an abandoned one with the next that is concluded.

        Until then a sender of it may be alive, and the next outbox has to fence all shards.
        """
        if status.status in ENDS - {"abandoned"}:
            self._home.remove(self._marker(status))
        if status.status == "concluded":
            earlier = [each for each in self.abandoned() if each.sequence < status.sequence]
            # Backfills have senders of their own, and fence no others.
            if earlier and self.manifest(status.outbox).interval is None:
                for each in earlier:
                    self._home.remove(self._marker(each))

    def _write(self, status: OutboxStatus) -> OutboxStatus:
        self._home.write(self._paths.status(status.outbox), status.to_json())
        return status

    def _document(self, kind: type[_Kind], path: str, outbox: str) -> _Kind:
        try:
            return kind.model_validate_json(self._home.read(path))
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"there is no outbox {outbox} of publication {self.publication}",
                next_step="list them with: contexture outbox list",
                outbox=outbox,
            ) from error
        except ValidationError as error:
            raise DefectError(
                f"{path} cannot be read as {kind.__name__}",
                next_step=self._way_out(kind, path, outbox),
                outbox=outbox,
                problems=error.error_count(),
            ) from error

    def _way_out(self, kind: type[StoredDocument], path: str, outbox: str) -> str:
        abandon = f"abandon the outbox (contexture outbox abandon {outbox} --reason …) and report this"
        if kind is not OutboxStatus:
            return abandon
        # Its status is lost: as prepared it can be abandoned, which makes a full run due.
        return f"copy its file in {self._paths.pending()}/ over {path} and {abandon}"


def _now() -> datetime:
    return datetime.now(UTC)
