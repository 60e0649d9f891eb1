"""Ending a run: state moves on as a whole or not at all, once, and only forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.layout import PublicationPaths
from builders.outboxes import NOON, publication, records
from builders.states import Held, approved, held
from contexture.errors import ConfigurationError, RetriableError
from contexture.storage.conclusion import conclude, require_full_run
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.state import StatePointer
from fakes.failing_storage import FailingStorage, KilledError

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def concluded(storage: Home, manifest: Manifest) -> StatePointer:
    return conclude(storage.publication(manifest.publication), manifest, cluster="cluster1", target="kafka1")


def test_the_first_run_makes_the_state(storage: Home):
    manifest = approved(storage, VEHICLES, 1, [Held("car1"), Held("car2", "b")], [records("car1", "car2")])

    pointer = concluded(storage, manifest)

    assert held(storage, "vehicles") == {"car1": "a", "car2": "b"}
    assert pointer == storage.publication("vehicles").state.pointer()
    assert pointer.model_dump(exclude={"concluded_at", "full_concluded_at"}) == {
        "generation": 1,
        "sequence": 1,
        "outbox": "outbox1",
        "files": ("base-000000000001.parquet",),
        "rows": (2,),
        "identities": 2,
        "watermark": "2026-03-01T12:00:00.000Z",
        "fingerprint": manifest.fingerprint,
        "cluster": "cluster1",
        "target": "kafka1",
        "full_run_due": None,
        "format": 3,
        "types": None,
        "incomplete": None,
        "lost_topics": None,
    }
    status = storage.publication("vehicles").outboxes.status("outbox1")
    assert (status.status, status.steps[-1].reason) == ("concluded", "2 records committed")


def test_the_next_run_changes_only_what_it_sends(storage: Home):
    concluded(storage, approved(storage, VEHICLES, 1, [Held("car1"), Held("car2"), Held("car3")]))

    pointer = concluded(
        storage, approved(storage, VEHICLES, 2, [Held("car2", "b"), Held("car3", removed=True), Held("car4")])
    )

    assert held(storage, "vehicles") == {"car1": "a", "car2": "b", "car4": "a"}
    assert pointer.identities == 3


def test_marks_come_before_what_was_sent(storage: Home):
    manifest = approved(storage, VEHICLES, 1, [Held("car1", "sent")])
    concluded(storage, manifest)
    second = approved(storage, VEHICLES, 2, [Held("car1", "sent again")])
    source = f"{FOLDER.state_delta('outbox1')}/shard-00000.parquet"
    storage.copy(source, f"{FOLDER.state_delta('outbox2')}/marks.parquet")

    concluded(storage, second)

    assert held(storage, "vehicles") == {"car1": "sent again"}


def test_a_run_without_changes_adds_no_file(storage: Home):
    first = concluded(storage, approved(storage, VEHICLES, 1, [Held("car1")]))

    second = concluded(storage, approved(storage, VEHICLES, 2, []))

    assert (second.files, second.generation, second.sequence) == (first.files, 2, 2)


def test_concluding_again_changes_nothing(storage: Home):
    manifest = approved(storage, VEHICLES, 1, [Held("car1")])
    first = concluded(storage, manifest)

    assert concluded(storage, manifest) == first
    assert len(storage.publication("vehicles").outboxes.status("outbox1").steps) == 3


def test_sequence_and_state_never_go_back(storage: Home):
    late = approved(storage, VEHICLES, 1, [Held("car1", "old")])
    newest = concluded(storage, approved(storage, VEHICLES, 2, [Held("car1", "new")]))

    assert concluded(storage, late) == newest
    assert held(storage, "vehicles") == {"car1": "new"}
    assert storage.publication("vehicles").outboxes.status("outbox1").status == "concluded"


class PausedHome(Home):
    """Lets others do something while the first file of a new state is written."""

    def __init__(self, root: str, others: Callable[[], object]) -> None:
        super().__init__(root)
        self.others: Callable[[], object] | None = others

    @contextmanager
    def write_atomically(self, relative: str) -> Iterator[str]:
        with super().write_atomically(relative) as temporary:
            yield temporary
            others, self.others = self.others, None
            if others is not None:
                others()


def test_a_process_that_was_paused_while_others_concluded_reverts_nothing(storage: Home):
    concluded(storage, approved(storage, VEHICLES, 1, [Held(f"car{number}") for number in range(20)]))
    second = approved(storage, VEHICLES, 2, [Held("car1", "b")])

    def others() -> None:
        concluded(storage, second)
        concluded(storage, approved(storage, VEHICLES, 3, [Held("car1", "c"), Held("car99")]))

    with pytest.raises(RetriableError, match="changed by another process in the meantime"):
        concluded(PausedHome(storage.root, others), second)

    assert storage.publication("vehicles").state.pointer().sequence == 3
    assert held(storage, "vehicles").keys() >= {"car0", "car99"}
    assert held(storage, "vehicles")["car1"] == "c"
    assert concluded(storage, second).sequence == 3


def test_a_debt_that_is_noted_while_a_run_is_concluded_stays(storage: Home):
    first = approved(storage, VEHICLES, 1, [Held("car1")])

    with pytest.raises(RetriableError):
        concluded(
            PausedHome(storage.root, lambda: require_full_run(storage.publication("vehicles"), "it was paused")), first
        )

    assert concluded(storage, first).full_run_due == "it was paused"


@pytest.mark.parametrize("end", ["rejected", "abandoned"])
def test_an_outbox_at_another_end_never_reaches_the_state(storage: Home, end: str):
    manifest = approved(storage, VEHICLES, 1, [Held("car1")])
    outboxes = storage.publication("vehicles").outboxes
    if end == "abandoned":
        outboxes.set_status("outbox1", "abandoned", reason="an operator")
    else:
        status = outboxes.status("outbox1")
        steps = (*status.steps[:1], status.steps[1].model_copy(update={"status": "rejected"}))
        storage.write(FOLDER.status("outbox1"), status.model_copy(update={"steps": steps}).to_json())

    with pytest.raises(ConfigurationError, match=f"is {end} and cannot become concluded"):
        concluded(storage, manifest)

    assert storage.publication("vehicles").state.pointer() == StatePointer()


def test_a_backfill_touches_neither_state_nor_watermark(storage: Home):
    before = concluded(storage, approved(storage, VEHICLES, 1, [Held("car1")]))
    interval = (NOON, NOON + timedelta(days=1))

    concluded(storage, approved(storage, VEHICLES, 2, [Held("car9")], mode="backfill", interval=interval))

    assert storage.publication("vehicles").state.pointer() == before
    assert storage.publication("vehicles").outboxes.status("outbox2").status == "concluded"


def test_a_debt_of_a_full_run_is_paid_by_a_full_run_only(storage: Home):
    require_full_run(storage.publication("vehicles"), "outbox7 was abandoned")

    changes = concluded(storage, approved(storage, VEHICLES, 1, [Held("car1")]))
    manifest = approved(storage, VEHICLES, 2, [Held("car1")], mode="full")
    full = conclude(
        storage.publication(manifest.publication),
        manifest,
        cluster="cluster1",
        target="kafka1",
        full_run_due="outbox7 was abandoned",
    )

    assert (changes.full_run_due, full.full_run_due) == ("outbox7 was abandoned", None)


def test_a_full_run_does_not_pay_what_came_after_it_had_read(storage: Home):
    require_full_run(storage.publication("vehicles"), "outbox7 was abandoned")
    manifest = approved(storage, VEHICLES, 1, [Held("car1")], mode="full")
    require_full_run(storage.publication("vehicles"), "backfill outbox8 was sent in parallel with other runs")

    full = conclude(
        storage.publication(manifest.publication),
        manifest,
        cluster="cluster1",
        target="kafka1",
        full_run_due="outbox7 was abandoned",
    )

    assert full.full_run_due == "backfill outbox8 was sent in parallel with other runs"


def test_deltas_that_outgrow_a_fifth_of_the_base_are_merged(storage: Home):
    concluded(storage, approved(storage, VEHICLES, 1, [Held(f"car{number}") for number in range(20)]))

    small = concluded(storage, approved(storage, VEHICLES, 2, [Held(f"car{number}", "b") for number in range(4)]))
    merged = concluded(storage, approved(storage, VEHICLES, 3, [Held("car19", removed=True)]))
    last = concluded(storage, approved(storage, VEHICLES, 4, [Held("car18", "c")]))

    assert (small.files, small.rows) == (("base-000000000001.parquet", "delta-000000000002.parquet"), (20, 4))
    assert (merged.files, merged.rows, merged.identities) == (("base-000000000003.parquet",), (19,), 19)
    assert held(storage, "vehicles", merged)["car3"] == "b"
    assert last.files == ("base-000000000003.parquet", "delta-000000000004.parquet")
    # Files of the generation before stay one run longer, because another process may be reading them.
    assert storage.files(FOLDER.state(), ".parquet") == list(last.files)


BEFORE = {"car1": "a", "car2": "a", "car3": "a"}
AFTER = {"car1": "b", "car3": "a", "car4": "d"}
CHANGES = [Held("car1", "b"), Held("car2", removed=True), Held("car4", "d")]


@pytest.mark.slow
def test_whatever_write_it_dies_at_the_state_is_the_old_or_the_new_one(tmp_path: Path):
    died = 0
    while (found := _concluded_with_a_kill(tmp_path / str(died), died)) is not None:
        seen, pointer = found
        assert (seen, pointer.generation) in [(BEFORE, 1), (AFTER, 2)]
        died += 1
    # Delta, merged base, pointer, an unused file, status and marker: each of them was the place of death once.
    assert died >= 5


def _concluded_with_a_kill(home: Path, changes: int) -> tuple[Mapping[str, str], StatePointer] | None:
    """The state right after the kill; None when there was no change left to die at. Concluding again ends it."""
    storage = Home(str(home))
    concluded(storage, approved(storage, VEHICLES, 1, [Held(name) for name in BEFORE]))
    storage.write(f"{FOLDER.state()}/delta-000000000000.parquet", b"of an older generation")
    manifest = approved(storage, VEHICLES, 2, CHANGES)
    try:
        concluded(FailingStorage(str(home), changes), manifest)
    except KilledError:
        seen, pointer = held(storage, "vehicles"), storage.publication("vehicles").state.pointer()
    else:
        return None
    finally:
        again = concluded(storage, manifest)
        assert held(storage, "vehicles") == AFTER
        assert (again.generation, again.identities) == (2, 3)
        assert storage.publication("vehicles").outboxes.status("outbox2").status == "concluded"
        assert storage.publication("vehicles").outboxes.pending() == []
    return seen, pointer


DELTAS = st.lists(
    st.lists(
        st.builds(
            Held,
            st.sampled_from(["car1", "car2", "car3"]),
            st.sampled_from("ab"),
            removed=st.booleans(),
            sequence=st.just(1),
            missing_since=st.none(),
        ),
        max_size=3,
        unique_by=lambda row: row.name,
    ),
    max_size=5,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(deltas=DELTAS)
def test_after_any_runs_the_state_is_what_they_sent_and_knows_its_size(
    tmp_path_factory: pytest.TempPathFactory, deltas: list[list[Held]]
):
    storage = Home(str(tmp_path_factory.mktemp("home")))
    expected: dict[str, str] = {}
    for sequence, delta in enumerate(deltas, 1):
        pointer = concluded(storage, approved(storage, VEHICLES, sequence, delta))
        for row in delta:
            expected.pop(row.name, None)
            if not row.removed:
                expected[row.name] = row.content
        assert held(storage, "vehicles") == expected
        assert (pointer.identities, pointer.generation) == (len(expected), sequence)
