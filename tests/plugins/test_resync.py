"""Which publications a request to resynchronise starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.outboxes import publication
from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.outbox.state import State
from contexture.outbox.storage import Storage
from contexture.publications import fingerprint
from contexture_airflow.resync import Start, starts_by_hand, starts_for_event
from contexture_airflow.steps.owing import owe_to_paused


def named(name: str, on_startup: str, on_config_change: str) -> Any:
    return publication(name=name, resync={"on_startup": on_startup, "on_config_change": on_config_change})


EAGER = named("eager", "full", "full")
MILD = named("mild", "pending", "pending")
QUIET = named("quiet", "none", "none")
ALL = [EAGER, MILD, QUIET]


def change(name: str) -> dict[str, str]:
    return {"publication": name, "old": "aaaa", "new": "bbbb"}


def as_sent(name: str) -> str:
    return {each.name: fingerprint(each) for each in ALL}[name]


def modes(payload: dict[str, Any], held: Callable[[str], str | None] = lambda name: "aaaa") -> dict[str, str]:
    return {start.publication: start.mode for start in starts_for_event(ALL, payload, held)}


def test_a_start_does_what_each_publication_says() -> None:
    assert modes({"startup": True, "config_changed": []}, as_sent) == {"eager": "full", "mild": "auto"}


def test_a_start_also_finds_changes_that_nobody_was_told_of() -> None:
    changed = named("changed", "none", "full")
    payload = {"startup": True, "config_changed": []}
    assert starts_for_event([changed, QUIET], payload, lambda name: "aaaa") == [
        Start("changed", "full", "the publication has changed")
    ]


def test_a_first_fingerprint_is_no_change() -> None:
    changed = named("changed", "none", "full")
    assert starts_for_event([changed], {"startup": True, "config_changed": []}, lambda name: None) == []


def test_a_change_that_was_told_before_anything_was_sent_counts() -> None:
    assert modes({"startup": False, "config_changed": [change("eager")]}, lambda name: None) == {"eager": "full"}


def test_a_change_concerns_only_what_has_changed() -> None:
    payload = {"startup": False, "config_changed": [change("eager"), change("quiet")]}
    assert modes(payload) == {"eager": "full"}


def test_a_change_that_a_run_has_seen_already_starts_nothing() -> None:
    assert modes({"startup": False, "config_changed": [change("eager")]}, as_sent) == {}


def test_start_and_change_at_once_start_one_run_that_sends_most() -> None:
    both = named("both", "pending", "full")
    payload = {"startup": True, "config_changed": [change("both")]}
    assert starts_for_event([both], payload, lambda name: "aaaa") == [
        Start("both", "full", "the publication has changed")
    ]


def test_by_hand_nothing_named_means_all() -> None:
    assert [start.publication for start in starts_by_hand(ALL, [], "full", None)] == ["eager", "mild", "quiet"]


def test_by_hand_policies_do_not_matter() -> None:
    assert starts_by_hand(ALL, ["quiet"], "full", "moved") == [Start("quiet", "full", "moved")]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no publication qiet. Next: choose among: eager, mild, quiet"):
        starts_by_hand(ALL, ["qiet"], "full", None)


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no mode 'fulll'. Next: choose among: auto, changes, full"):
        starts_by_hand(ALL, ["quiet"], "fulll", None)


def test_the_same_request_gives_the_same_run_id() -> None:
    assert Start("eager", "full", "moved").trigger_arguments("manual__1") == {
        "trigger_dag_id": "publish_eager",
        "trigger_run_id": "resync__manual__1",
        "conf": {"mode": "full", "reason": "moved"},
    }


@pytest.mark.parametrize(
    ("mode", "owed"), [("full", "everything again (while it was paused)"), ("auto", None), ("changes", None)]
)
def test_a_paused_registry_s_publication_owes_what_was_asked_for(tmp_path: Path, mode: str, owed: str | None) -> None:
    storage = Storage(str(tmp_path))
    paused = [Start(name, mode, "everything again") for name in ("structures", "vehicles")]
    owe_to_paused(storage, [structures(), publication()], paused)
    assert State(storage, "structures").pointer().owes_full == owed
    assert State(storage, "vehicles").pointer().owes_full is None
