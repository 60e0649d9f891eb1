"""The order to the stage job, and its result."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError, DefectError, RetriableError, from_dict
from contexture.publications import Publication, fingerprint
from contexture.sending.target import TargetFor
from contexture.storage.orders import Retry, StageOrder, StageResult
from contexture.storage.publication_store import REPORT_PAGE, PublicationStore
from contexture.storage.quarantine_retry import resolve
from contexture_airflow.run import RunPlan, RunRequest, StagedOutbox
from contexture_airflow.steps.plan_run import plan_run


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """An order that lies on storage."""

    publication: str
    run: str
    uri: str


def place_order(
    store: PublicationStore, publication: Publication, request: RunRequest, plan: RunPlan, target_for: TargetFor
) -> PlacedOrder:
    """Writes the order where the stage job will find it, and removes the answer of an earlier try.

    A publication that was corrected since settle is taken as it is now; what was read for the old one is forgotten.

    Raises:
        ConfigurationError: a later run has concluded, so what this one reads could overtake it.
    """
    run, pointer = store.run(plan.run), store.state.pointer()
    if plan.mode != "backfill" and plan.sequence <= pointer.sequence:
        raise ConfigurationError(
            f"run {plan.sequence} has ended: it, or a later one, is concluded",
            next_step="start a new run, or clear this one from settle on, so that it gets a new number",
            publication=publication.name,
        )
    own = fingerprint(publication)
    if plan.fingerprint != own:
        plan = plan_run(store, publication, request, target_for(publication, request.interval), run=plan.run)
    _forget_other(store, plan.run, own)
    order = StageOrder(
        publication=publication,
        fingerprint=own,
        home=store.home.root,
        run=plan.run,
        mode=plan.mode,
        sequence=plan.sequence,
        republish=request.republish,
        confirm_shrink=request.confirm_shrink,
        interval=request.interval,
        retry=_retry(store, publication, request),
        baseline=plan.baseline,
        log_sent_to=plan.log_sent_to,
        cluster=plan.cluster,
        full_run_due=pointer.full_run_due,
        replay=request.replay,
    )
    run.write_order(order)
    return PlacedOrder(publication.name, plan.run, run.order_uri)


def _retry(store: PublicationStore, publication: Publication, request: RunRequest) -> Retry | None:
    if request.retry_quarantine is None or request.interval is not None:
        return None
    return resolve(store, request.retry_quarantine, request.retry_rules)


def read_staged_outbox(store: PublicationStore, order: PlacedOrder, submit_failure: Exception | None) -> StagedOutbox:
    """The outbox that the job prepared.

    The job answers when all else is done, so an answer holds whatever became of its process afterwards.

    Raises:
        ContextureError: what the job answered, by its intent; retriable when it ended without an answer.
    """
    result = store.run(order.run).result()
    if result is not None and result.error is not None:
        raise from_dict(result.error) from submit_failure
    if result is None:
        raise _write_missing_result(store, order) from submit_failure
    if result.outbox is None or result.sequence is None:
        raise DefectError("the Spark job reported no outbox", next_step="report this", run=order.run)
    return StagedOutbox(
        publication=order.publication,
        run=order.run,
        outbox=result.outbox,
        sequence=result.sequence,
        records=result.records,
        shards=result.shards,
        report=_report(store, result.outbox),
    )


def _report(store: PublicationStore, outbox: str) -> str | None:
    """Where the page of the data quality report is on storage; None where the run left none."""
    report = store.outbox(outbox).report
    return report.uri_of(REPORT_PAGE) if report.exists(REPORT_PAGE) else None


def _write_missing_result(store: PublicationStore, order: PlacedOrder) -> RetriableError:
    """What to say of a job that ended without a word; its answer is written for it.

    Raises:
        RetriableError: there is no room for that: then there was none for the job's own answer, and that is the reason.
    """
    error = RetriableError(
        "the Spark job ended without a result",
        next_step="read the log above: memory, Java, or the connection to the Spark master",
        publication=order.publication,
    )
    store.run(order.run).write_result(StageResult(error=error.as_dict()))
    return error


def _forget_other(store: PublicationStore, run: str, own_fingerprint: str) -> None:
    ordered = store.run(run)
    if ordered.has_order() and ordered.order().fingerprint != own_fingerprint:
        store.landing(run).remove()
        ordered.work.remove()
