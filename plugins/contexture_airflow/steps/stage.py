"""The order to the stage job, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contexture.errors import ConfigurationError, DefectError, RetriableError, from_dict
from contexture.publications import Publication, fingerprint
from contexture.sending.target import TargetFor
from contexture.storage.home import Storage
from contexture.storage.orders import Retry, StageOrder, StageResult
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.quarantine import resolve
from contexture.storage.state import State
from contexture_airflow.run import RunPlan, RunRequest, StagedOutbox
from contexture_airflow.steps.plan_run import plan_run

REPORT_PAGE: Final = "index.html"


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """An order that lies on storage."""

    publication: str
    run: str
    uri: str


def place_order(
    storage: Storage, publication: Publication, request: RunRequest, plan: RunPlan, target_for: TargetFor
) -> PlacedOrder:
    """Writes the order where the stage job will find it, and removes the answer of an earlier try.

    A publication that was corrected since settle is taken as it is now; what was read for the old one is forgotten.

    Raises:
        ConfigurationError: a later run has concluded, so what this one reads could overtake it.
    """
    folder, pointer = PublicationFolder(publication.name), State(storage, publication.name).pointer()
    if plan.mode != "backfill" and plan.sequence <= pointer.sequence:
        raise ConfigurationError(
            f"run {plan.sequence} is over: it, or one after it, is concluded",
            next_step="start a new run, or clear this one from settle on, so that it gets a new number",
            publication=publication.name,
        )
    own = fingerprint(publication)
    if plan.fingerprint != own:
        plan = plan_run(storage, publication, request, target_for(publication, request.interval), run=plan.run)
    _forget_other(storage, folder, plan.run, own)
    storage.remove(folder.result(plan.run))
    order = StageOrder(
        publication=publication,
        fingerprint=own,
        home=storage.root,
        run=plan.run,
        mode=plan.mode,
        sequence=plan.sequence,
        republish=request.republish,
        confirm_shrink=request.confirm_shrink,
        interval=request.interval,
        retry=_retry(storage, publication, request),
        baseline=plan.baseline,
        told=plan.told,
        cluster=plan.cluster,
        owed=pointer.owes_full,
        replay=request.replay,
    )
    storage.write(folder.order(plan.run), order.to_json())
    return PlacedOrder(publication.name, plan.run, storage.uri(folder.order(plan.run)))


def _retry(storage: Storage, publication: Publication, request: RunRequest) -> Retry | None:
    if request.retry_quarantine is None or request.interval is not None:
        return None
    return resolve(storage, publication.name, request.retry_quarantine, request.retry_rules)


def answer(storage: Storage, order: PlacedOrder, submit_failure: Exception | None) -> StagedOutbox:
    """The outbox that the job prepared.

    The job answers when all else is done, so an answer holds whatever became of its process afterwards.

    Raises:
        ContextureError: what the job answered, by its intent; retriable when it ended without an answer.
    """
    result = _result(storage, order)
    if result is not None and result.error is not None:
        raise from_dict(result.error) from submit_failure
    if result is None:
        raise _unanswered(storage, order) from submit_failure
    if result.outbox is None or result.sequence is None:
        raise DefectError("the Spark job answered without an outbox", next_step="report this", run=order.run)
    return StagedOutbox(
        publication=order.publication,
        run=order.run,
        outbox=result.outbox,
        sequence=result.sequence,
        records=result.records,
        shards=result.shards,
        report=_report(storage, order.publication, result.outbox),
    )


def _report(storage: Storage, publication: str, outbox: str) -> str | None:
    """Where the page of the data quality report is on storage; None where the run left none."""
    page = f"{PublicationFolder(publication).report(outbox)}/{REPORT_PAGE}"
    return storage.uri(page) if storage.exists(page) else None


def _unanswered(storage: Storage, order: PlacedOrder) -> RetriableError:
    """What to say of a job that ended without a word; its answer is written for it.

    Raises:
        RetriableError: there is no room for that: then there was none for the job's own answer, and that is the reason.
    """
    error = RetriableError(
        "the Spark job ended without an answer",
        next_step="read the log above: memory, Java, or the connection to the Spark master",
        publication=order.publication,
    )
    result = PublicationFolder(order.publication).result(order.run)
    storage.write(result, StageResult(error=error.as_dict()).to_json())
    return error


def _result(storage: Storage, order: PlacedOrder) -> StageResult | None:
    try:
        return StageResult.from_file(storage, PublicationFolder(order.publication).result(order.run))
    except FileNotFoundError:
        return None


def _forget_other(storage: Storage, folder: PublicationFolder, run: str, own_fingerprint: str) -> None:
    if not storage.exists(folder.order(run)):
        return
    before = StageOrder.from_file(storage, folder.order(run))
    if before.fingerprint != own_fingerprint:
        storage.remove(folder.landing(run))
        storage.remove(folder.work(run))
