"""The values that the tasks of a run pass to each other: request, plan, staged outbox.

They travel through XCom as small dictionaries: references and counts, never rows, never secrets.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, JsonValue

from contexture.storage.archive import Interval
from contexture.storage.manifests import Mode
from contexture.storage.orders import ReplayOptions


class XComModel(BaseModel):
    """A frozen value that travels between tasks."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def to_xcom(self) -> dict[str, JsonValue]:
        """Returns the value as JSON objects, for XCom."""
        dumped: dict[str, JsonValue] = self.model_dump(mode="json")
        return dumped

    @classmethod
    def from_xcom(cls, value: object) -> Self:
        """Returns the value that `to_xcom` wrote."""
        return cls.model_validate(value)


class RunRequest(XComModel):
    """The run's params, its id, and its data interval when it is a backfill.

    Attributes:
        run_type: Airflow's, such as `scheduled` or `manual`.
        triggered_by: the name in Airflow of the user who started it; None where no user did.
        since: from when on a concluded full run is enough, and this run sends changes alone.
    """

    run_id: str
    run_type: str = ""
    triggered_by: str | None = None
    mode: Literal["auto", "full", "changes"] = "auto"
    reason: str | None = None
    confirm_shrink: bool = False
    republish: bool = False
    dry_run: bool = False
    interval: Interval | None = None
    retry_quarantine: str | None = None
    retry_rules: tuple[str, ...] = ()
    replay: ReplayOptions = ReplayOptions()
    since: datetime | None = None


class RunPlan(XComModel):
    """What settle decided.

    Attributes:
        run: folder name of the run's files.
        mode: what to read and send.
        sequence: the number the outbox will carry.
        fingerprint: of the publication that it was decided for.
        why: one clause for people.
        baseline: what the registry holds becomes state, and nothing is sent.
        cluster: the Kafka cluster that it was decided for.
        log_sent_to: the registry transaction up to which another instance has sent the log; None where this one has
            state.
        settled: outboxes of earlier runs that were finished first.
    """

    run: str
    mode: Mode
    sequence: int
    fingerprint: str
    why: str
    baseline: bool = False
    cluster: str | None = None
    log_sent_to: int | None = None
    settled: tuple[str, ...] = ()


class StagedOutbox(XComModel):
    """The outbox that stage prepared."""

    publication: str
    run: str
    outbox: str
    sequence: int
    records: int
    shards: tuple[int, ...]
    report: str | None = None
