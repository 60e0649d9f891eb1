"""Which mode a run takes."""

from __future__ import annotations

from typing import Any

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import NOON, publication
from contexture.errors import ConfigurationError
from contexture.storage.orders import ReplayOptions
from contexture.storage.state import StatePointer
from contexture_airflow.run import RunRequest
from contexture_airflow.steps.plan_run import check_replay, decide, find_difference

CHANGED = "the publication has changed"
KNOWN = {
    "outbox": "outbox1",
    "sequence": 1,
    "fingerprint": "aaaa",
    "cluster": "cluster-a",
    "target": "PLAINTEXT://broker:9092",
}


@pytest.mark.parametrize(
    ("request_", "pointer", "policy", "changed", "mode"),
    [
        ({}, {}, "full", None, "changes"),
        ({"mode": "full"}, {}, "none", None, "full"),
        ({"mode": "changes"}, {}, "full", CHANGED, "changes"),
        ({}, {}, "full", CHANGED, "full"),
        ({}, {}, "pending", CHANGED, "changes"),
        ({}, {}, "none", CHANGED, "changes"),
        ({}, {"full_run_due": "an outbox was abandoned"}, "none", None, "full"),
        ({"mode": "changes"}, {"full_run_due": "an outbox was abandoned"}, "none", None, "full"),
        ({"mode": "changes"}, {"outbox": None}, "none", None, "full"),
        ({"retry_quarantine": "a"}, {"full_run_due": "an outbox was abandoned"}, "full", CHANGED, "changes"),
        ({"retry_quarantine": "a", "mode": "full"}, {}, "full", None, "changes"),
        ({"interval": (NOON, NOON)}, {"full_run_due": "an outbox was abandoned"}, "full", CHANGED, "backfill"),
    ],
)
def test_the_mode_follows_from_request_state_and_policy(
    request_: dict[str, Any], pointer: dict[str, Any], policy: str, changed: str | None, mode: str
) -> None:
    vehicles = publication(resync={"on_startup": "none", "on_config_change": policy})
    asked = RunRequest.model_validate({"run_id": "a", **request_})
    assert decide(vehicles, StatePointer.model_validate({**KNOWN, **pointer}), asked, changed)[0] == mode


@pytest.mark.parametrize("mode", ["full", "notifications"])
def test_a_publication_has_a_mode_of_its_own(mode: str) -> None:
    source = {**publication().source.model_dump(exclude_defaults=True), "mode": mode}
    pointer = StatePointer.model_validate(KNOWN)
    assert decide(publication(source=source), pointer, RunRequest(run_id="a"), None)[0] == mode


def test_the_first_run_of_what_is_notified_reads_everything() -> None:
    source = {**publication().source.model_dump(exclude_defaults=True), "mode": "notifications"}
    assert decide(publication(source=source), StatePointer(), RunRequest(run_id="a"), None)[0] == "full"


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ({}, None),
        ({"fingerprint": "bbbb"}, "the publication has changed"),
        ({"cluster": "cluster-b"}, "the Kafka cluster is another one"),
        ({"target": "SSL://broker:9093"}, "the Kafka connection is another one"),
        ({"fingerprint": None, "cluster": None, "target": None}, None),
    ],
)
def test_a_difference_is_named(pointer: dict[str, Any], expected: str | None) -> None:
    assert find_difference(StatePointer.model_validate({**KNOWN, **pointer}), "aaaa", FakeTarget()) == expected


def test_quarantined_events_are_not_tried_again_before_anything_was_published() -> None:
    asked = RunRequest(run_id="a", retry_quarantine="b")
    with pytest.raises(ConfigurationError, match="nothing was published yet"):
        decide(publication(), StatePointer(), asked, None)


def test_what_is_for_backfills_is_refused_in_other_runs() -> None:
    asked = RunRequest(run_id="a", replay=ReplayOptions(topic_prefix="again-"))
    with pytest.raises(ConfigurationError, match="topic_prefix are for backfills, and this is a run that reads"):
        check_replay(publication(), asked)
    check_replay(publication(), asked.model_copy(update={"interval": (NOON, NOON)}))
    check_replay(publication(), RunRequest(run_id="a"))
