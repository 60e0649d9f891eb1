"""State: what the target holds according to us, and the pointer that says which files tell it.

A base, deltas of what the runs since then changed, each much smaller than the one before, and `CURRENT`, which is
replaced last: until then nothing has happened, and afterwards everything has.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from contexture.changes.attribute_types import AttributeTypes
from contexture.errors import RetriableError
from contexture.storage.document import Versioned
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.layout import PublicationFolder
from contexture.storage.lost_topics import LostTopics
from contexture.storage.schemas import STATE
from contexture.storage.state_reader import StateReader
from contexture.storage.storage import Storage

FORMAT = 3
"""Of the files: sorted by entity, with references and finality of structures."""


class StatePointer(Versioned):
    """Which files make up the state, and what it was made by.

    `generation` grows by one with each concluded run; `cluster` and `target` are the Kafka cluster's id and the target
    connection's identity (no secrets); `owes_full` is set by an abandoned outbox: the next run sends everything;
    `format` is that of the files; `types` names the file with the NGSI types that attributes had; `full_concluded_at`
    is when the last run that sent everything concluded; `incomplete` says since when deletions are not detected;
    `lost_topics` are those that were removed, until a full run has sent everything to them again.
    """

    FORMAT: ClassVar[int] = FORMAT

    generation: int = 0
    sequence: int = 0
    outbox: str | None = None
    files: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    identities: int = 0
    watermark: str | None = None
    fingerprint: str | None = None
    cluster: str | None = None
    target: str | None = None
    owes_full: str | None = None
    concluded_at: datetime | None = None
    format: int = FORMAT
    types: str | None = None
    full_concluded_at: datetime | None = None
    incomplete: Incompleteness | None = None
    lost_topics: LostTopics | None = None


class State:
    """The state of one publication on storage."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self.storage = storage
        self.folder = PublicationFolder(publication)

    def pointer(self) -> StatePointer:
        """The current pointer; an empty one before the first run has concluded."""
        try:
            return StatePointer.from_file(self.storage, self.folder.current_state())
        except FileNotFoundError:
            return StatePointer()

    def point(self, pointer: StatePointer, *, after: StatePointer | None = None) -> None:
        """Makes `pointer` the truth.

        Args:
            pointer: the new one.
            after: the one that it was made of. A process that stood still for long must not take back what others
                did meanwhile: the state would lack what they sent, and a debt that was noted would be forgotten.

        Raises:
            RetriableError: `after` is the truth no more, or the storage failed.
        """
        if after is not None and self.pointer() != after:
            raise RetriableError(
                f"the state of {self.folder.publication} was moved on by somebody else meanwhile",
                next_step="retry the task: it goes on from the state of now",
                publication=self.folder.publication,
            )
        self.storage.write(self.folder.current_state(), pointer.to_json())

    def reader(self, pointer: StatePointer) -> StateReader:
        """Reads the generation that a pointer tells."""
        paths = [self.path(name) for name in pointer.files]
        return StateReader(self.storage, paths)

    def table(self, pointer: StatePointer, columns: list[str] | None = None) -> Any:
        """The rows that hold, one per identity: deltas over the base, removed ones left out.

        Args:
            pointer: which state.
            columns: only these; all of them when None.
        """
        return self.reader(pointer).table(columns or STATE.names)

    def attribute_types(self, pointer: StatePointer) -> AttributeTypes:
        """The NGSI types that attributes had in earlier runs."""
        if pointer.types is None:
            return AttributeTypes()
        return AttributeTypes.from_json(self.storage.read(self.path(pointer.types)))

    def path(self, name: str) -> str:
        """Where a file of the state lies."""
        return f"{self.folder.state()}/{name}"
