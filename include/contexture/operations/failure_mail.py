"""The text of an alert: what happened, what is safe, what waits, what to do. Never a secret.

Nor data, but for one thing: who is asked whether entities may be deleted is told which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape

from contexture.operations.alerts import AlertKind, what_is_safe
from contexture.operations.interventions import is_known_of_backfill
from contexture.operations.rows import BACKFILL_RUN
from contexture.storage.delivery import AttemptLog, SendAttempts
from contexture.storage.home import Storage
from contexture.storage.outboxes import Outboxes

_BECAME = {
    AlertKind.DEAD_LETTERS: "has put records aside",
    AlertKind.INCOMPLETE: "could not tell what is deleted",
    AlertKind.TOPIC_REMOVED: "has noticed that a topic was removed",
    AlertKind.QUESTION: "waits for an answer",
}
_ADDRESSES = ("Answer here", "The run", "The log of the task")


@dataclass(frozen=True, slots=True)
class PendingSend:
    """An outbox that waits, and the shards of it that failed; `of_backfill`: its own run alone sends it."""

    outbox: str
    sequence: int
    status: str
    sends: tuple[SendAttempts, ...]
    of_backfill: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A task of a publication's run that failed for good, or a run that is late, asks or has put records aside.

    Attributes:
        task: its id, with the shard if it has one; empty where the run is late, or has ended well but for this.
        happened: one sentence.
        next_step: what to do.
        run_url, log_url: pages of Airflow.
        answer_url: the one where a question is answered.
        samples: identities that a question is about.
        about: what tells it from others that are told in the same words.
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


def pending_sends(storage: Storage, publication: str) -> tuple[PendingSend, ...]:
    """What of a publication is approved or prepared and not at its end."""
    log, outboxes = AttemptLog(storage, publication), Outboxes(storage, publication)
    return tuple(
        PendingSend(
            each.outbox,
            each.sequence,
            each.status,
            tuple(send for send in log.of_outbox(each.outbox) if send.is_open),
            is_known_of_backfill(outboxes, each.outbox),
        )
        for each in outboxes.pending()
    )


def compose(failure: Failure) -> Mail:
    """The mail about a failure; in the HTML everything is escaped."""
    lines = [(None, _opening(failure)), *_story(failure)]
    html = "\n".join(_paragraph(title, text) for title, text in lines)
    text = "\n".join(f"{title}: {said}" if title else said for title, said in lines)
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
    became = "has failed" if failure.task else _BECAME.get(failure.kind, "is late")
    return f"The run {failure.run_id} of publication {failure.publication} {became}."


def _story(failure: Failure) -> Iterator[tuple[str, str]]:
    again = failure.run_id.startswith(BACKFILL_RUN)
    approved = any(each.status == "approved" and each.of_backfill == again for each in failure.pending)
    where = f"{failure.task}, " if failure.task else ""
    yield "What happened", f"{where}{failure.at:%Y-%m-%d %H:%M:%SZ}: {failure.happened}"
    yield from (("Would be deleted", identity) for identity in failure.samples)
    yield "What is safe", what_is_safe(failure.kind, outbox_waits=approved, of_backfill=again)
    for each in failure.pending:
        yield from (("Pending", line) for line in _told(each))
    yield "What to do next", failure.next_step
    for title, url in zip(_ADDRESSES, (failure.answer_url, failure.run_url, failure.log_url), strict=True):
        if url:
            yield title, url


def _told(each: PendingSend) -> list[str]:
    first = f"outbox {each.outbox} (run {each.sequence}), {each.status}: contexture outbox show {each.outbox[:12]}"
    return [first, *(f"shard {send.shard}: {send.told()}: {send.message}" for send in each.sends)]


def _paragraph(title: str | None, text: str) -> str:
    if title is None:
        return f"<p>{escape(text)}</p>"
    shown = f'<a href="{escape(text)}">{escape(text)}</a>' if title in _ADDRESSES else escape(text)
    return f"<p><b>{escape(title)}:</b> {shown}</p>"
