"""What becomes of an outbox: which steps there are, what each leaves behind, and what a kill in between leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication, records
from contexture.errors import ConfigurationError, DefectError
from contexture.storage.home import Home
from contexture.storage.outboxes import Outboxes, Status

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")
STEPS: list[tuple[Status, set[Status]]] = [
    ("prepared", {"prepared", "approved", "rejected", "abandoned"}),
    ("approved", {"approved", "concluded", "abandoned"}),
    ("concluded", {"concluded"}),
    ("rejected", {"rejected"}),
    ("abandoned", {"abandoned"}),
]
PATHS: dict[Status, tuple[Status, ...]] = {
    "prepared": (),
    "approved": ("approved",),
    "concluded": ("approved", "concluded"),
    "rejected": ("rejected",),
    "abandoned": ("abandoned",),
}
ALL: tuple[Status, ...] = ("prepared", "approved", "concluded", "rejected", "abandoned")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def moved(storage: Home, *steps: Status) -> Outboxes:
    outbox(storage, VEHICLES, 1, [records("car1")], name="first")
    outboxes = storage.publication("vehicles").outboxes
    for step in steps:
        outboxes.set_status("first", step, reason=f"to {step}")
    return outboxes


@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize(("start", "reachable"), STEPS)
def test_only_the_steps_of_the_story_are_allowed(storage: Home, start: Status, reachable: set[Status], to: Status):
    outboxes = moved(storage, *PATHS[start])

    if to in reachable:
        assert outboxes.set_status("first", to, reason="asked").status == to
    else:
        with pytest.raises(ConfigurationError, match=f"is {start} and cannot become {to}"):
            outboxes.set_status("first", to, reason="asked")
    assert outboxes.status("first").status == (to if to in reachable else start)


def test_the_story_keeps_each_step_with_its_reason_once(storage: Home):
    outboxes = moved(storage, "approved", "approved", "concluded", "concluded")

    steps = outboxes.status("first").steps
    assert [(step.status, step.reason) for step in steps] == [
        ("prepared", "run run1"),
        ("approved", "to approved"),
        ("concluded", "to concluded"),
    ]
    assert [step.at for step in steps] == sorted(step.at for step in steps)


def test_preparing_again_leaves_the_story_as_it_is(storage: Home):
    outboxes = moved(storage, "approved")

    assert outboxes.prepared(outboxes.manifest("first")).status == "approved"


def test_pending_outboxes_come_in_order_of_sequence(storage: Home):
    for sequence, name in ((10, "c"), (2, "b"), (1, "a"), (3, "d")):
        outbox(storage, VEHICLES, sequence, [records("car1")], name=name)
    outboxes = storage.publication("vehicles").outboxes
    outboxes.set_status("b", "rejected", reason="refused")
    outboxes.set_status("d", "approved", reason="good")

    assert [(item.outbox, item.status) for item in outboxes.pending()] == [
        ("a", "prepared"),
        ("d", "approved"),
        ("c", "prepared"),
    ]
    assert [item.outbox for item in outboxes.all()] == ["a", "b", "d", "c"]


def test_an_outbox_killed_before_its_status_was_written_blocks_no_other(storage: Home):
    outboxes = moved(storage)
    storage.remove(FOLDER.status("first"))

    assert outboxes.pending() == []
    assert outboxes.prepared(outboxes.manifest("first")).status == "prepared"
    assert [item.outbox for item in outboxes.pending()] == ["first"]


def test_a_marker_that_was_not_removed_at_the_end_is_no_pending_outbox(storage: Home):
    outboxes = moved(storage)
    marker = FOLDER.pending_marker(1, "first")
    content = storage.read(marker)
    outboxes.set_status("first", "rejected", reason="refused")
    storage.write(marker, content)

    assert outboxes.pending() == []
    outboxes.set_status("first", "rejected", reason="again")
    assert not storage.exists(marker)


def test_an_unknown_outbox_says_where_to_look(storage: Home):
    with pytest.raises(ConfigurationError, match="there is no outbox nothing of publication vehicles") as error:
        storage.publication("vehicles").outboxes.manifest("nothing")

    assert error.value.next_step == "list them with: contexture outbox list"


def test_a_document_that_is_none_of_ours_is_a_defect_and_names_its_path(storage: Home):
    outboxes = moved(storage)
    storage.write(FOLDER.status("first"), b'{"outbox": 1}')

    with pytest.raises(DefectError, match=r"vehicles/outbox/first/status\.json cannot be read as OutboxStatus"):
        outboxes.status("first")
