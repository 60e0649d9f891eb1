"""The mail about a run that failed: what happened, what is safe, what waits, what to do. Never data, never a secret."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape

from contexture.outbox.attempts import AttemptLog, SendAttempts
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.storage import Storage

_SAFE_PENDING = (
    "Nothing is lost: what is in Kafka stays there and is not sent twice, and what is not yet there waits in the "
    "outbox. The next run sends it before it reads anything new, with all its attempts."
)
_SAFE = "Nothing waits to be sent. What earlier runs sent stays in Kafka as it is; the next run reads the source anew."


@dataclass(frozen=True, slots=True)
class PendingSend:
    """An outbox that waits, and the shards of it that failed."""

    outbox: str
    sequence: int
    status: str
    sends: tuple[SendAttempts, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A task of a publication's run that failed for good.

    Attributes:
        task: its id, with the shard if it has one.
        happened: one sentence.
        next_step: what to do.
        run_url, log_url: pages of Airflow.
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


@dataclass(frozen=True, slots=True)
class Mail:
    """A subject of one line, and a body in HTML that needs no network."""

    subject: str
    html: str


def pending_sends(storage: Storage, publication: str) -> tuple[PendingSend, ...]:
    """What of a publication is approved or prepared and not at its end."""
    log = AttemptLog(storage, publication)
    return tuple(
        PendingSend(
            each.outbox,
            each.sequence,
            each.status,
            tuple(send for send in log.of_outbox(each.outbox) if send.is_open),
        )
        for each in Outboxes(storage, publication).pending()
    )


def compose(failure: Failure) -> Mail:
    """The mail about a failure; everything in it is escaped."""
    approved = any(each.status == "approved" for each in failure.pending)
    parts = [
        _paragraph(f"The run {failure.run_id} of publication {failure.publication} has failed."),
        _titled("What happened", f"{failure.task}, {failure.at:%Y-%m-%d %H:%M:%SZ}: {failure.happened}"),
        _titled("What is safe", _SAFE_PENDING if approved else _SAFE),
        *(_titled("Pending", line) for each in failure.pending for line in _told(each)),
        _titled("What to do next", failure.next_step),
        _linked("The run", failure.run_url),
        _linked("The log of the task", failure.log_url),
    ]
    subject = " ".join(f"[Contexture] {failure.publication}: {failure.task} failed".split())
    return Mail(subject, "\n".join(parts))


def _told(each: PendingSend) -> list[str]:
    first = f"outbox {each.outbox} (run {each.sequence}), {each.status}: contexture outbox show {each.outbox[:12]}"
    return [first, *(f"shard {send.shard}: {send.told()}: {send.message}" for send in each.sends)]


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _titled(title: str, text: str) -> str:
    return f"<p><b>{escape(title)}:</b> {escape(text)}</p>"


def _linked(title: str, url: str) -> str:
    return f'<p><b>{escape(title)}:</b> <a href="{escape(url)}">{escape(url)}</a></p>' if url else ""
