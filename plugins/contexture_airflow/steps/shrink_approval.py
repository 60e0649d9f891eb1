"""A run whose source has shrunk beyond its limit: the question to a person, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from contexture.errors import ConfigurationError
from contexture.monitoring import RunTableWriter
from contexture.monitoring.alerts import AlertKind
from contexture.monitoring.rows import InterventionRow
from contexture.publications import Publication
from contexture.storage.publication_store import PublicationStore
from contexture.storage.shrink_report import ShrinkDecision, ShrinkReport

APPROVE: Final = "Approve"
REJECT: Final = "Reject"
ACTION: Final = "answer about shrinking"

_SHOWN: Final = 30
_LONGEST: Final = 150


def decision_of_event(event: Mapping[str, Any]) -> ShrinkDecision:
    """Returns the decision from what Airflow resumes a waiting task with."""
    user = event.get("responded_by_user") or {}
    name = str(user.get("name") or user.get("id") or "") or None
    reason = str((event.get("params_input") or {}).get("reason") or "").strip()
    # Anything but a plain approval by a person deletes nothing.
    approved = "error" not in event and list(event.get("chosen_options") or []) == [APPROVE] and name is not None
    return ShrinkDecision(approved=approved, who=name, reason=reason or "no reason was given")


def find_shrink_question(
    store: PublicationStore, publication: Publication, run: str, error: ConfigurationError
) -> ShrinkReport | None:
    """What a person is asked about when a run has failed so; None where no one is asked."""
    if publication.source.shrink_limit.beyond != "ask" or "vanishing" not in error.context:
        return None
    return store.run(run).shrink_report()


def compose_question(publication: Publication, vanishing: ShrinkReport) -> str:
    """What would be deleted, in Markdown: identities stand in a block of code, where nothing of them is markup."""
    shown = vanishing.identities[:_SHOWN]
    lines = [
        f"**{vanishing.count}** of the {vanishing.held} identities that publication `{publication.name}` has sent are "
        f"missing from the source, and {vanishing.limit} may be deleted in one run. The first of them:",
        "",
        *(f"    {describe_safe_state(each)}" for each in shown),
        "",
        f"*{APPROVE}*: tombstones are sent for all {vanishing.count}, and the run continues with what it has read. "
        f"*{REJECT}*, or no answer within {publication.source.shrink_limit.answer_hours} hours: nothing is sent, and "
        "the run fails. First check that the source is complete.",
    ]
    return "\n".join(lines)


def decide(store: PublicationStore, writer: RunTableWriter, run: str, run_id: str, decision: ShrinkDecision) -> None:
    """Keeps a decision: beside the run's orders, so that a retry does not ask again, and among the interventions.

    Raises:
        ConfigurationError: the run may not go on.
    """
    if decision.who is not None:
        writer.write(lambda tables: tables.insert_action(_row(store.name, run_id, decision)))
    if not decision.approved:
        raise ConfigurationError(
            f"more is missing from the source than may be deleted in one run, and {decision.clause}",
            next_step="check that the source is complete; if they were really deleted, start a new run and approve "
            "it, or start it with confirm_shrink",
            publication=store.name,
            alert=AlertKind.SHRINK_GUARD,
        )
    store.run(run).write_shrink_decision(decision)


def _row(publication: str, run_id: str, decision: ShrinkDecision) -> InterventionRow:
    return InterventionRow(
        id=uuid4().hex,
        publication=publication,
        at=datetime.now(UTC),
        who=str(decision.who),
        action=ACTION,
        subject="",
        reason=decision.reason,
        outcome="approved: the run continues" if decision.approved else "rejected: nothing was sent",
        run_id=run_id,
    )


def describe_safe_state(identity: str) -> str:
    """An identity on one line, and not too long: it comes from anyone."""
    text = identity if len(identity) <= _LONGEST else f"{identity[:_LONGEST]}…"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
