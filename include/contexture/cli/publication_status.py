"""Where every publication stands, from its files and the operational tables: neither Airflow nor Kafka is asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import computed_field

from contexture.cli import home
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.operations_status import Operations, OperationsReader
from contexture.errors import ConfigurationError
from contexture.monitoring.alerts import PendingSend
from contexture.operations.page.sources import Sources, manifest, stored
from contexture.operations.page.standing import Standing
from contexture.operations.page.status import StatusReport
from contexture.operations.page.status import statuses as reported
from contexture.publications import Publication, discover
from contexture.storage.delivery import AttemptLog, SendAttempts
from contexture.storage.home import Storage
from contexture.storage.inbox_reader import InboxReader
from contexture.storage.manifests import Document


class PendingOutbox(Document):
    """An outbox that has not come to its end; `sends` are its shards that failed at least once."""

    outbox: str
    sequence: int
    status: str
    sends: tuple[SendAttempts, ...]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of property
    @property
    def attempts(self) -> int:
        """All failed sends."""
        return sum(each.failed for each in self.sends)


class Waiting(Document):
    """Notifications that no concluded run has taken: in how many files, and since when the oldest of them."""

    files: int
    since: datetime


class PublicationStatus(Document):
    """One publication.

    Attributes:
        configured: whether a good file of this name lies in the folder of publications; None when there is no folder.
        baseline: whether the last concluded run noted what a registry holds, and sent nothing.
        quarantined: entities or structures that the last concluded run held back; None when it is no longer kept.
        owes_full: why the next run sends everything.
        damaged: whether its files can't be read: nothing of them is told here then, and `status` says why.
        waiting: what is in its inbox; None when nothing is.
        operations: its latest run and transactions; None when the operational tables tell nothing.
        status: what monitoring asks for, the same as by HTTP.
    """

    publication: str
    configured: bool | None
    concluded_at: datetime | None
    sequence: int
    outbox: str | None
    mode: str | None
    baseline: bool
    identities: int
    watermark: str | None
    quarantined: int | None
    owes_full: str | None
    damaged: bool
    pending: tuple[PendingOutbox, ...]
    waiting: Waiting | None
    operations: Operations | None
    status: StatusReport

    @property
    def question(self) -> str | None:
        """What a run waits for somebody to answer; None where none does."""
        return self.status.reason if self.status.standing is Standing.ASKING else None

    @property
    def needs_a_person(self) -> bool:
        """Whether its last run failed, a run waits for an answer, deletions go unseen, a topic was removed and is not
        filled again, or sending has failed."""
        if self.status.standing in {Standing.STOPPED, Standing.ASKING} or not self.status.deletions.detected:
            return True
        if self.status.topics.removed:
            return True
        return any(send.is_open for outbox in self.pending for send in outbox.sends)


def statuses(storage: Storage, operations: OperationsReader, only: str | None = None) -> list[PublicationStatus]:
    """Every publication that has a file or has run, by name; or one of them.

    Raises:
        ConfigurationError: there is none of that name.
    """
    configured = _configured()
    names = sorted({*home.publications(storage), *(configured or ())})
    if only is not None:
        names = [_known(only, names)]
    sources = Sources(storage, operations.tables(), configured or {}, {}, datetime.now(UTC))
    reports = {each.publication: each for each in reported(sources, names)}
    return [
        _status(storage, name, None if configured is None else name in configured, operations.of(name), reports[name])
        for name in names
    ]


def _known(wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    raise ConfigurationError(
        f"there is no publication {wanted}",
        next_step=f"name one of {', '.join(names)}" if names else "set CONTEXTURE_HOME as Airflow has it",
    )


def _configured() -> dict[str, Publication] | None:
    folder = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    try:
        return {each.publication.name: each.publication for each in discover(folder) if each.publication is not None}
    except ConfigurationError:
        return None


def _status(
    storage: Storage, name: str, configured: bool | None, operations: Operations | None, report: StatusReport
) -> PublicationStatus:
    # As the page reads them: damage of one publication hides none of the others.
    found = stored(storage, name)
    pointer = found.pointer
    last = manifest(storage, name, pointer.outbox)
    return PublicationStatus(
        publication=name,
        configured=configured,
        concluded_at=pointer.concluded_at,
        sequence=pointer.sequence,
        outbox=pointer.outbox,
        mode=last.mode if last else None,
        baseline=bool(last and last.baseline),
        identities=pointer.identities,
        watermark=pointer.watermark,
        quarantined=last.quarantined_entities if last else None,
        owes_full=pointer.owes_full,
        damaged=bool(found.damage),
        pending=tuple(_pending(storage, name, each) for each in found.pending),
        waiting=_waiting(storage, name),
        operations=operations,
        status=report,
    )


def _pending(storage: Storage, name: str, found: PendingSend) -> PendingOutbox:
    sends = AttemptLog(storage, name).of_outbox(found.outbox)
    return PendingOutbox(outbox=found.outbox, sequence=found.sequence, status=found.status, sends=sends)


def _waiting(storage: Storage, name: str) -> Waiting | None:
    files = InboxReader(storage, name).files()
    if not files:
        return None
    return Waiting(files=len(files), since=datetime.fromtimestamp(files[0].time_us / 1_000_000, UTC))
