"""Alerts: their kinds, their mails, and which were sent already, so that none is sent twice.

A mail contains no data, with one exception: a question about deletions names the first identities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from html import escape
from typing import Final

from contexture.errors import ContextureError, DefectError
from contexture.monitoring.rows import BACKFILL_RUN
from contexture.storage.delivery import SendAttempts
from contexture.storage.documents import StoredDocument
from contexture.storage.folder import StoredFolder
from contexture.storage.publication_store import PublicationStore

_SENDERS: Final = frozenset({"publish", "settle"})


class AlertKind(StrEnum):
    """What happened, in a few words.

    An error names its kind itself: the value is in its context as `alert`.
    """

    FORCED_STOP = "sending is stopped"
    RETRIES_USED_UP = "retries used up"
    CRITICAL_EXPECTATION = "critical expectation failed"
    SHRINK_GUARD = "too much vanished"
    QUESTION = "waiting for approval"
    REPLICA_DIFFERS = "replica differs"
    LATE = "not published in time"
    DEAD_LETTERS = "dead letters"
    INCOMPLETE = "deletions not detected"
    TOPIC_REMOVED = "topic removed"
    OVERTAKEN = "another sender took over"
    RUN_FAILED = "run failed"

    @property
    def recovers_itself(self) -> bool:
        """Whether the next run solves it, so that the first one needs no alert."""
        return self is AlertKind.OVERTAKEN

    @property
    def repeats(self) -> bool:
        """Whether a second one within the hour is sent too, because each is about something else."""
        return self is AlertKind.QUESTION


_KEPT: Final = (
    "Nothing is lost: what is in Kafka stays there and is not sent twice, and what is not yet there waits in the "
    "outbox."
)
_WAITS: Final = f"{_KEPT} The next run sends it before it reads anything new, with all its attempts available again."
_BACKFILL_WAITS: Final = (
    f"{_KEPT} The backfill's own run alone sends it, with all its attempts, when its publish task is cleared. The "
    "other runs of the publication continue."
)
_NOTHING_WAITS: Final = (
    "Nothing waits to be sent. What earlier runs sent stays in Kafka as it is; the next run reads the source again."
)
_SAFE: Final[Mapping[AlertKind, str]] = {
    AlertKind.FORCED_STOP: f"{_WAITS} Until then nothing after it is sent, so that the order stays correct.",
    AlertKind.CRITICAL_EXPECTATION: "Nothing of this run was sent or will be sent: the outbox is rejected. The topics "
    "hold what earlier runs sent.",
    AlertKind.SHRINK_GUARD: "Nothing was sent and nothing deleted: the topics hold what earlier runs sent, also of "
    "what is missing in the source now.",
    AlertKind.QUESTION: "Nothing of this run was sent and nothing deleted: it waits, and needs no slot. Without an "
    "answer in time it fails, and deletes nothing.",
    AlertKind.REPLICA_DIFFERS: "Verifying only reads: neither topics nor state were changed by it.",
    AlertKind.DEAD_LETTERS: "Everything else of the run was sent. Dead letters count neither as sent nor as "
    "deleted: the topics keep their earlier records.",
    AlertKind.INCOMPLETE: "New and changed entities are sent, and nothing is deleted by mistake. What is "
    "deleted in the source stays in the topics until a read is complete again.",
    AlertKind.TOPIC_REMOVED: "State, outboxes and archive are as they were. A full run makes the topic again and "
    "sends everything that the source holds; if this run is not a full one, the next one is.",
    AlertKind.LATE: "Nothing is lost or skipped: the run continues, unless the publication is suspended, and what it "
    "sends arrives later than configured.",
}


def kind_of(error: ContextureError | None, task: str, sends: Iterable[SendAttempts] = ()) -> AlertKind:
    """Returns the kind of alert for a failed task.

    Args:
        error: what the task failed with; None where it is no error of Contexture.
        task: its id, without a shard.
        sends: the recorded sends of pending outboxes.
    """
    named = None if error is None else error.context.get("alert")
    if named in set(AlertKind):
        return AlertKind(str(named))
    # An error that crossed processes may have lost its class, but the state of the send is on storage.
    states = {send.state for send in sends} if task in _SENDERS else set()
    if "stopped" in states:
        return AlertKind.FORCED_STOP
    return AlertKind.RETRIES_USED_UP if "exhausted" in states else AlertKind.RUN_FAILED


def describe_safety(kind: AlertKind, *, outbox_waits: bool, of_backfill: bool = False) -> str:
    """Describes what is safe, for the reader of an alert.

    Args:
        kind: what happened.
        outbox_waits: whether an approved outbox is pending.
        of_backfill: whether a run of a backfill failed, whose outbox no other run sends.
    """
    if of_backfill and (kind is AlertKind.FORCED_STOP or (kind not in _SAFE and outbox_waits)):
        return _BACKFILL_WAITS
    return _SAFE.get(kind) or (_WAITS if outbox_waits else _NOTHING_WAITS)


_OUTCOMES = {
    AlertKind.DEAD_LETTERS: "has sent records to the dead-letter topic",
    AlertKind.INCOMPLETE: "could not detect deletions",
    AlertKind.TOPIC_REMOVED: "has found that a topic was removed",
    AlertKind.QUESTION: "waits for an answer",
}
_ADDRESSES = ("Answer here", "The run", "The log of the task")


@dataclass(frozen=True, slots=True)
class PendingSend:
    """A pending outbox and its failed sends; `of_backfill`: only its own run sends it."""

    outbox: str
    sequence: int
    status: str
    sends: tuple[SendAttempts, ...]
    of_backfill: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """What an alert is about: a task that failed after all retries, or a run that is late, asks or warns.

    Attributes:
        task: its id, with the shard if it has one; empty where no task failed.
        happened: one sentence.
        next_step: what to do.
        run_url, log_url: pages of Airflow.
        answer_url: the page of Airflow where a question is answered.
        samples: identities that a question is about.
        about: distinguishes it from others with the same text; empty where the text is enough.
    """

    publication: str
    run_id: str
    task: str
    at: datetime
    happened: str
    next_step: str
    run_url: str
    log_url: str
    pending: tuple[PendingSend, ...] = ()
    kind: AlertKind = AlertKind.RUN_FAILED
    answer_url: str = ""
    samples: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Mail:
    """A subject of one line, and a body: in HTML that needs no network, and as plain text."""

    subject: str
    html: str
    text: str


def pending_sends(store: PublicationStore) -> tuple[PendingSend, ...]:
    """Returns the outboxes of a publication that are prepared or approved, with their open sends."""
    log, outboxes = store.attempts, store.outboxes
    return tuple(
        PendingSend(
            each.outbox,
            each.sequence,
            each.status,
            tuple(send for send in log.of_outbox(each.outbox) if send.is_open),
            outboxes.is_known_of_backfill(each.outbox),
        )
        for each in outboxes.pending()
    )


def compose_alert(failure: Failure) -> Mail:
    """Composes the mail about a failure; in the HTML everything is escaped."""
    lines = [(None, _opening(failure)), *_details(failure)]
    html = "\n".join(_paragraph(title, line) for title, line in lines)
    text = "\n".join(f"{title}: {line}" if title else line for title, line in lines)
    return Mail(_subject(failure), html, text)


def _subject(failure: Failure) -> str:
    if not failure.task:
        what = str(failure.kind)
    elif failure.kind is AlertKind.RUN_FAILED:
        what = f"{failure.task} failed"
    else:
        what = f"{failure.kind} ({failure.task} failed)"
    return " ".join(f"[Contexture] {failure.publication}: {what}".split())


def _opening(failure: Failure) -> str:
    if failure.kind is AlertKind.REPLICA_DIFFERS:
        found = f"Verifying the topics of publication {failure.publication} has found differences"
        return f"{found} (run {failure.run_id})."
    outcome = "has failed" if failure.task else _OUTCOMES.get(failure.kind, "is late")
    return f"The run {failure.run_id} of publication {failure.publication} {outcome}."


def _details(failure: Failure) -> Iterator[tuple[str, str]]:
    again = failure.run_id.startswith(BACKFILL_RUN)
    approved = any(each.status == "approved" and each.of_backfill == again for each in failure.pending)
    where = f"{failure.task}, " if failure.task else ""
    yield "What happened", f"{where}{failure.at:%Y-%m-%d %H:%M:%SZ}: {failure.happened}"
    yield from (("Would be deleted", identity) for identity in failure.samples)
    yield "What is safe", describe_safety(failure.kind, outbox_waits=approved, of_backfill=again)
    for each in failure.pending:
        yield from (("Pending", line) for line in _pending_lines(each))
    yield "What to do next", failure.next_step
    for title, url in zip(_ADDRESSES, (failure.answer_url, failure.run_url, failure.log_url), strict=True):
        if url:
            yield title, url


def _pending_lines(each: PendingSend) -> list[str]:
    first = f"outbox {each.outbox} (run {each.sequence}), {each.status}: contexture outbox show {each.outbox[:12]}"
    return [first, *(f"shard {send.shard}: {send.describe()}: {send.message}" for send in each.sends)]


def _paragraph(title: str | None, text: str) -> str:
    if title is None:
        return f"<p>{escape(text)}</p>"
    shown = f'<a href="{escape(text)}">{escape(text)}</a>' if title in _ADDRESSES else escape(text)
    return f"<p><b>{escape(title)}:</b> {shown}</p>"


QUIET: Final = timedelta(hours=1)
"""How long the same alert is not sent again."""


class SentAlert(StoredDocument):
    """The last alert of a kind.

    Attributes:
        run_id: the run it was about.
        about: digest of what happened.
        sent: whether it was sent; the first one of a kind that recovers itself is only recorded.
    """

    run_id: str
    about: str
    at: datetime
    sent: bool


class AlertMemory:
    """The last alert of each kind of one publication, in a folder of its store."""

    def __init__(self, folder: StoredFolder) -> None:
        self._folder = folder

    def is_due(self, failure: Failure) -> bool:
        """Returns whether an alert is to be sent.

        Within an hour none is sent again about the same run, whose shards fail for the same reason, or about the same
        problem in later runs. A kind that recovers itself is sent when it happens to a second run within the hour.
        Each question is sent once.
        """
        before = self._last(failure)
        if before is not None and before.sent and _is_same(before, failure):
            return False
        if failure.kind.recovers_itself:
            return before is not None and before.run_id != failure.run_id
        return True

    def record(self, failure: Failure, *, sent: bool) -> None:
        """Writes an alert; one that was not sent replaces none of the last hour."""
        if not sent and self._last(failure) is not None:
            return
        alert = SentAlert(run_id=failure.run_id, about=_digest(failure), at=failure.at, sent=sent)
        self._folder.write(_file_name(failure.kind), alert.to_json())

    def _last(self, failure: Failure) -> SentAlert | None:
        try:
            last = self._folder.find_document(SentAlert, _file_name(failure.kind))
        except DefectError:
            return None
        return last if last is not None and failure.at - last.at < QUIET else None


def _file_name(kind: AlertKind) -> str:
    return f"{kind.replace(' ', '-')}.json"


def _is_same(before: SentAlert, failure: Failure) -> bool:
    same_run = before.run_id == failure.run_id and not failure.kind.repeats
    return same_run or before.about == _digest(failure)


def _digest(failure: Failure) -> str:
    return sha256((failure.about or failure.happened).encode()).hexdigest()[:20]
