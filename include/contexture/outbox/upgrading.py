"""Bringing the files of a publication to the formats of today.

Each file is written new and takes its place in one step, `CURRENT` after the files that it names: a process that dies
in between leaves files of both formats, which are read alike, and the next call goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from contexture.errors import DefectError, RetriableError
from contexture.outbox.formats import STATE, Stored
from contexture.outbox.state import FORMAT, State, StatePointer
from contexture.outbox.state_advance import Written, rewritten
from contexture.outbox.storage import Storage
from contexture.outbox.upgrade_mark import upgrading


@dataclass(frozen=True, slots=True)
class Step:
    """What is done with some documents of one kind and one format.

    Attributes:
        what: the kind.
        found: their format; None where they say none.
        current: the format of today.
        files: how many they are.
        todo: what is done with them; empty where nothing need be.
    """

    what: str
    found: int | None
    current: int
    files: int
    todo: str


def steps(documents: Iterable[Stored]) -> list[Step]:
    """What is to be done with a publication's documents, those alike together."""
    alike: dict[tuple[str, int | None], list[Stored]] = {}
    for each in documents:
        alike.setdefault((each.kind.name, each.found), []).append(each)
    return [
        Step(name, found, group[0].kind.current, len(group), _todo(group[0])) for (name, found), group in alike.items()
    ]


def upgrade(storage: Storage, publication: str, documents: Iterable[Stored]) -> int:
    """Brings documents to the formats of today; how many were changed. Runs of the publication wait meanwhile.

    Raises:
        RetriableError: a run moved state on meanwhile, or the storage failed; calling it again goes on.
        DefectError: a document is not what it says; it stays as it is.
    """
    outdated = [each for each in documents if not each.is_current]
    if not outdated and not storage.exists(State(storage, publication).folder.upgrading()):
        return 0
    with upgrading(storage, State(storage, publication).folder):
        for each in outdated:
            if each.kind is STATE:
                _upgrade_state(State(storage, publication))
            else:
                _mark(storage, each)
    return len(outdated)


def _todo(document: Stored) -> str:
    if document.is_current:
        return ""
    if document.kind is STATE:
        return "written anew as one sorted file"
    return "marked with its format"


def _mark(storage: Storage, each: Stored) -> None:
    try:
        content = storage.read(each.path)
    except FileNotFoundError:
        # Retention or an operator took it meanwhile.
        return
    try:
        read = each.kind.document.model_validate_json(content)
    except ValueError as error:
        raise DefectError(
            f"{each.path} can not be read as {each.kind.name}",
            next_step="restore it, or move it out of the home, then upgrade again; nothing of it was changed",
        ) from error
    storage.write(each.path, read.model_copy(update={each.kind.document.FORMAT_MEMBER: each.kind.current}).to_json())


def _upgrade_state(state: State) -> None:
    before = state.pointer()
    written = rewritten(state, before)
    if written.identities != before.identities:
        raise DefectError(
            f"state of {state.folder.publication} says {before.identities} identities and holds {written.identities}",
            next_step="keep the home as it is and report this; a run in mode full makes the state anew",
        )
    after = _pointing(before, written)
    if state.pointer() != before:
        raise RetriableError(
            f"a run of {state.folder.publication} has moved its state on meanwhile",
            next_step="pause the publication, wait for its run to end, then upgrade again",
        )
    # The files that `before` names stay until the next run is concluded, for whoever reads them just now.
    state.storage.write(state.folder.current_state(), after.to_json())


def _pointing(before: StatePointer, written: Written) -> StatePointer:
    files = {"files": written.files, "rows": written.rows, "identities": written.identities}
    return before.model_copy(update={**files, "format": FORMAT})
