"""Which publications a request to resynchronise starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import NOON, outbox, publication, records
from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.publications import Publication, fingerprint
from contexture.storage.home import Home
from contexture_airflow.run import RunPlan, RunRequest
from contexture_airflow.steps.conclude import conclude_outbox
from contexture_airflow.steps.resync import (
    RunStart,
    StateOrigin,
    find_state_origin,
    require_full_runs_of_paused,
    starts_by_hand,
    starts_for_event,
)
from contexture_airflow.steps.settle import finish_open_transaction


def named(name: str, on_startup: str, on_config_change: str) -> Any:
    return publication(name=name, resync={"on_startup": on_startup, "on_config_change": on_config_change})


EAGER = named("eager", "full", "full")
MILD = named("mild", "pending", "pending")
QUIET = named("quiet", "none", "none")
ALL = [EAGER, MILD, QUIET]
VEHICLES = publication()
SECOND = timedelta(seconds=1)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def conclude_outbox_of(storage: Home, made_for: Publication, sequence: int, mode: str) -> None:
    """Concludes an empty outbox of a publication."""
    manifest = outbox(storage, made_for, sequence, [[]], mode=mode)
    storage.publication(made_for.name).outboxes.set_status(manifest.outbox, "approved", reason="test")
    assert conclude_outbox(storage.publication(manifest.publication), manifest, made_for, FakeTarget(), now=NOON)


def plan_next(storage: Home, made_for: Publication, start: RunStart | None = None) -> RunPlan:
    """The plan of the run that a request starts, or the schedule, after all runs before it have ended."""
    conf = {} if start is None else start.trigger_arguments("asset__1")["conf"]
    request = RunRequest.model_validate({"run_id": "next", **conf})
    return finish_open_transaction(
        storage.publication(made_for.name), made_for, request, FakeTarget(), lambda sentence: None
    )


def change(name: str) -> dict[str, str]:
    return {"publication": name, "old": "aaaa", "new": "bbbb"}


def as_sent(name: str) -> StateOrigin:
    return StateOrigin(frozenset({fingerprint(each) for each in ALL if each.name == name}))


def before(name: str) -> StateOrigin:
    return StateOrigin(frozenset({"aaaa"}))


def never(name: str) -> StateOrigin:
    return StateOrigin()


def modes(payload: dict[str, Any], find_state_origin: Callable[[str], StateOrigin] = before) -> dict[str, str]:
    return {start.publication: start.mode for start in starts_for_event(ALL, payload, find_state_origin)}


def test_a_start_does_what_each_publication_says() -> None:
    assert modes({"startup": True, "config_changed": []}, as_sent) == {"eager": "full", "mild": "auto"}


def test_a_start_also_finds_changes_that_no_event_reported() -> None:
    changed = named("changed", "none", "full")
    payload = {"startup": True, "config_changed": []}
    assert starts_for_event([changed, QUIET], payload, before) == [
        RunStart("changed", "auto", "the publication has changed")
    ]


def test_a_first_fingerprint_is_no_change() -> None:
    changed = named("changed", "none", "full")
    assert starts_for_event([changed], {"startup": True, "config_changed": []}, never) == []


@pytest.mark.parametrize(
    ("changed", "mode"), [(EAGER, "auto"), (structures(resync={"on_config_change": "full"}), "full")]
)
def test_a_change_before_anything_was_sent_starts_a_run_that_sends_everything(changed: Publication, mode: str) -> None:
    """A broker's first run is full by itself; a registry's only notes what is there, unless it is requested in full."""
    payload = {"startup": False, "config_changed": [change(changed.name)]}
    assert starts_for_event([changed], payload, never) == [RunStart(changed.name, mode, "the publication has changed")]


def test_a_change_concerns_only_what_has_changed() -> None:
    payload = {"startup": False, "config_changed": [change("eager"), change("quiet")]}
    assert modes(payload) == {"eager": "auto"}


def test_a_change_back_to_what_state_has_starts_a_run_because_another_may_be_under_way() -> None:
    assert modes({"startup": False, "config_changed": [change("eager")]}, as_sent) == {"eager": "auto"}


def test_a_start_finds_a_change_in_an_outbox_that_waits(storage: Home) -> None:
    renamed = publication(topics={"naming": "injective"})
    conclude_outbox_of(storage, VEHICLES, 1, "full")
    assert starts_for_event([renamed], {"startup": True}, lambda name: find_state_origin(storage.publication(name)))[
        0
    ].reason == ("the publication has changed")
    conclude_outbox_of(storage, renamed, 2, "full")
    assert starts_for_event([renamed], {"startup": True}, lambda name: find_state_origin(storage.publication(name)))[
        0
    ].reason == ("start of Contexture")
    outbox(storage, VEHICLES, 3, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox3", "approved", reason="test")
    assert starts_for_event([renamed], {"startup": True}, lambda name: find_state_origin(storage.publication(name)))[
        0
    ].reason == ("the publication has changed")


def test_start_and_change_in_one_event_start_one_run_that_sends_most() -> None:
    both = named("both", "full", "pending")
    payload = {"startup": True, "config_changed": [change("both")]}
    assert starts_for_event([both], payload, before) == [RunStart("both", "full", "start of Contexture")]


@pytest.mark.parametrize(("full_at", "starts"), [(NOON - SECOND, 1), (NOON, 0), (NOON + SECOND, 0)])
def test_a_start_loads_nothing_again_that_a_full_run_has_sent_since(full_at: datetime, starts: int) -> None:
    payload = {"startup": True, "since": NOON.isoformat(), "config_changed": []}
    made = StateOrigin(frozenset({fingerprint(EAGER)}), full_at)
    assert len(starts_for_event([EAGER], payload, lambda name: made)) == starts


def test_a_started_run_knows_from_when_on_a_full_run_is_enough() -> None:
    (start,) = starts_for_event([EAGER], {"startup": True, "since": "2026-03-01T12:00:00+00:00"}, never)
    assert start.trigger_arguments("asset__1")["conf"] == {
        "mode": "full",
        "reason": "start of Contexture",
        "since": "2026-03-01T12:00:00+00:00",
    }


def test_by_hand_nothing_named_means_all() -> None:
    assert [start.publication for start in starts_by_hand(ALL, [], "full", None)] == ["eager", "mild", "quiet"]


def test_by_hand_policies_do_not_matter() -> None:
    assert starts_by_hand(ALL, ["quiet"], "full", "moved") == [RunStart("quiet", "full", "moved")]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no publication qiet. Next: choose among: eager, mild, quiet"):
        starts_by_hand(ALL, ["qiet"], "full", None)


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no mode 'fulll'. Next: choose among: auto, changes, full"):
        starts_by_hand(ALL, ["quiet"], "fulll", None)


def test_the_same_request_gives_the_same_run_id() -> None:
    assert RunStart("eager", "full", "moved").trigger_arguments("manual__1") == {
        "trigger_dag_id": "publish_eager",
        "trigger_run_id": "resync__manual__1",
        "conf": {"mode": "full", "reason": "moved"},
    }


@pytest.mark.parametrize(
    ("mode", "owed"), [("full", "everything again (while it was paused)"), ("auto", None), ("changes", None)]
)
def test_a_paused_registry_s_publication_owes_what_was_asked_for(tmp_path: Path, mode: str, owed: str | None) -> None:
    storage = Home(str(tmp_path))
    paused = [RunStart(name, mode, "everything again") for name in ("structures", "vehicles")]
    require_full_runs_of_paused(storage, [structures(), publication()], paused)
    assert storage.publication("structures").state.pointer().full_run_due == owed
    assert storage.publication("vehicles").state.pointer().full_run_due is None


def test_a_change_that_is_reverted_while_its_run_is_under_way_is_sent_again(storage: Home) -> None:
    """A to B starts a run, B to A comes before that run concludes: the target must end as A."""
    renamed = publication(topics={"naming": "injective"})
    conclude_outbox_of(storage, VEHICLES, 1, "full")
    reverted = {"startup": False, "config_changed": [change("vehicles")]}
    (start,) = starts_for_event([VEHICLES], reverted, lambda name: find_state_origin(storage.publication(name)))
    conclude_outbox_of(storage, renamed, 2, "full")
    plan = plan_next(storage, VEHICLES, start)
    assert (plan.mode, plan.why) == ("full", "the publication has changed")


def test_a_change_that_a_run_has_seen_already_sends_nothing_again(storage: Home) -> None:
    conclude_outbox_of(storage, VEHICLES, 1, "full")
    start = RunStart("vehicles", "auto", "the publication has changed", NOON)
    assert plan_next(storage, VEHICLES, start).mode == "changes"


def test_going_back_after_a_run_that_sent_changes_alone_is_a_change(storage: Home) -> None:
    """Records of that run are in the target in the other form."""
    renamed = publication(topics={"naming": "injective"})
    conclude_outbox_of(storage, VEHICLES, 1, "full")
    conclude_outbox_of(storage, renamed, 2, "changes")
    assert plan_next(storage, VEHICLES).mode == "full"
    conclude_outbox_of(storage, VEHICLES, 3, "full")
    assert plan_next(storage, VEHICLES).mode == "changes"


def fresh_start() -> RunStart:
    (start,) = starts_for_event([EAGER_VEHICLES], {"startup": True, "since": NOON.isoformat()}, never)
    return start


EAGER_VEHICLES = publication(resync={"on_startup": "full", "on_config_change": "full"})


def test_a_fresh_start_loads_once_where_the_scheduled_run_comes_first(storage: Home) -> None:
    start = fresh_start()
    assert plan_next(storage, EAGER_VEHICLES).mode == "full"
    conclude_outbox_of(storage, EAGER_VEHICLES, 1, "full")
    assert plan_next(storage, EAGER_VEHICLES, start).mode == "changes"


def test_a_fresh_start_loads_once_where_the_resynchronisation_comes_first(storage: Home) -> None:
    assert plan_next(storage, EAGER_VEHICLES, fresh_start()).mode == "full"
    conclude_outbox_of(storage, EAGER_VEHICLES, 1, "full")
    assert plan_next(storage, EAGER_VEHICLES).mode == "changes"


def test_a_fresh_start_loads_where_the_scheduled_run_has_failed(storage: Home) -> None:
    assert plan_next(storage, EAGER_VEHICLES, fresh_start()).mode == "full"


def test_a_later_start_loads_again(storage: Home) -> None:
    conclude_outbox_of(storage, EAGER_VEHICLES, 1, "full")
    full_at = storage.publication("vehicles").state.pointer().full_concluded_at
    assert full_at is not None
    payload = {"startup": True, "since": (full_at + SECOND).isoformat()}
    (start,) = starts_for_event([EAGER_VEHICLES], payload, lambda name: find_state_origin(storage.publication(name)))
    assert plan_next(storage, EAGER_VEHICLES, start).mode == "full"


def test_a_fresh_start_loads_once_where_each_run_of_the_publication_is_full(storage: Home) -> None:
    source = {**publication().source.model_dump(exclude_defaults=True), "mode": "full"}
    always = publication(source=source, resync={"on_startup": "pending"})
    (start,) = starts_for_event([always], {"startup": True, "since": NOON.isoformat()}, never)
    conclude_outbox_of(storage, always, 1, "full")
    assert plan_next(storage, always, start).mode == "changes"
    assert plan_next(storage, always).mode == "full"


def test_a_fresh_start_loads_again_what_was_loaded_for_another_version_of_the_file(storage: Home) -> None:
    conclude_outbox_of(storage, publication(topics={"naming": "injective"}), 1, "full")
    assert plan_next(storage, EAGER_VEHICLES, fresh_start()).mode == "full"
