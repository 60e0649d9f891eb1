"""Data registrations from the registry to the topic. Reading, preparing, sending and concluding are real."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import pytest

from builders import registrations, registry
from builders.replica_world import World
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import split
from contexture.sources.sdmx.registry import StructureEntry
from fakes.structure_registry import NOON, FakeRegistry

LIST = registry.urn("CL_A")
ONE, TWO, THREE = (registrations.urn(name) for name in ("exr-1", "exr-2", "exr-3"))
SOURCE = {"kind": "sdmx", "connection": "registry", "registrations": True}
LOG = pytest.mark.parametrize(
    ("has_log", "hides"), [(True, True), (True, False), (False, False)], ids=["hidden", "listed", "without a log"]
)


def started(home: Path, *, has_log: bool = True, hides: bool = True, **changes: object) -> World:
    """A world whose registry holds a code list and two registrations, all published."""
    world = World(home, has_log=has_log, **{"source": SOURCE, **changes})
    world.registry.hides_registrations = hides
    world.registry.submit({LIST: ("a",)})
    world.registry.submit({ONE: ("https://example.org/1",), TWO: ("https://example.org/2",)})
    world.instances[0].run("full")
    world.began()
    return world


@LOG
def test_each_is_a_record_with_its_urn_as_key(tmp_path: Path, has_log: bool, hides: bool) -> None:
    world = started(tmp_path, has_log=has_log, hides=hides)

    sent = world.replica()["structures"]
    assert sorted(sent) == sorted([LIST, ONE, TWO])
    [artefact] = split(BytesIO(sent[ONE]))
    assert (artefact.urn, b"https://example.org/1" in sent[ONE], b"exr-2" in sent[ONE]) == (ONE, True, False)


@LOG
def test_a_change_a_new_one_and_a_deletion_are_published(tmp_path: Path, has_log: bool, hides: bool) -> None:
    world = started(tmp_path, has_log=has_log, hides=hides)

    world.registry.submit({ONE: ("https://example.org/moved",), THREE: ("https://example.org/3",)}, delete=[TWO])
    world.instances[0].run("changes")

    sent = world.replica()["structures"]
    assert sorted(sent) == sorted([LIST, ONE, THREE])
    assert b"https://example.org/moved" in sent[ONE]
    # What did not change is not sent again, and deletions have a transaction of their own.
    assert [len(transaction) for transaction in records_of(world)] == [2, 1]


def records_of(world: World) -> list[list[str]]:
    """Keys of the records of each Kafka transaction since the world began, without those of the ledger."""
    found = []
    for transaction in world.cluster.transactions[world._sent_before :]:
        keys = [(sent.key or b"").decode() for sent in transaction if not sent.topic.startswith("contexture.")]
        found += [keys] if keys else []
    return found


def test_what_the_log_hides_has_the_number_of_its_transaction(tmp_path: Path) -> None:
    world = started(tmp_path)

    world.registry.submit({LIST: ("b",)})
    world.registry.submit({ONE: ("https://example.org/moved",)})
    world.registry.submit({LIST: ("c",)})
    world.instances[0].run("changes")

    assert world.sent_transactions() == [(3, False, 1), (4, False, 1), (5, False, 1)]
    assert records_of(world) == [[LIST], [ONE], [LIST]]


def test_several_hidden_transactions_are_one(tmp_path: Path) -> None:
    world = started(tmp_path)

    world.registry.submit({ONE: ("https://example.org/moved",)})
    world.registry.submit({}, delete=[TWO])
    world.instances[0].run("changes")

    assert world.sent_transactions() == [(4, False, 1), (4, True, 1)]
    assert sorted(world.replica()["structures"]) == sorted([LIST, ONE])


def test_two_instances_send_each_hidden_transaction_once(tmp_path: Path) -> None:
    world = World(tmp_path, instances=2, source=SOURCE)
    world.registry.hides_registrations = True
    world.registry.submit({LIST: ("a",)})
    world.registry.submit({ONE: ("https://example.org/1",)})
    for instance in world.instances:
        instance.run("full")
    world.began()

    world.registry.submit({ONE: ("https://example.org/moved",)})
    for instance in world.instances:
        instance.run("changes")

    assert records_of(world) == [[ONE]]


class LateRegistry(FakeRegistry):
    """Something happens between its list and its log."""

    late: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def list_structures(self, media_type: str | None = None) -> StructureEntry:
        listed = super().list_structures(media_type)
        late, self.late = self.late, {}
        if late:
            self.submit(late)
        return listed


def test_what_happens_between_the_list_and_the_log_is_not_passed_over(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.registry.__class__ = LateRegistry
    world.registry.submit({LIST: ("b",)})
    world.registry.late = {THREE: ("https://example.org/3",)}  # type: ignore[attr-defined]

    world.instances[0].run("changes")

    assert sorted(world.replica()["structures"]) == sorted([LIST, ONE, TWO, THREE])
    assert world.sent_transactions() == [(3, False, 1), (4, False, 1)]


def test_many_are_read_together(tmp_path: Path) -> None:
    many = {registrations.urn(f"r-{number}"): (f"https://example.org/{number}",) for number in range(6)}
    world = started(tmp_path)
    world.registry.asked.clear()

    world.registry.submit(many)
    world.instances[0].run("changes")

    assert sorted(world.replica()["structures"]) == sorted([LIST, ONE, TWO, *many])
    assert "Registration=ECB:*(*)" in world.registry.asked
    assert not set(many) & set(world.registry.asked)


def test_what_a_reply_about_many_lacks_is_read_by_its_id(tmp_path: Path) -> None:
    many = {registrations.urn(f"r-{number}"): (f"https://example.org/{number}",) for number in range(6)}
    world = started(tmp_path)
    lacking = next(iter(many))
    world.registry.withheld = {lacking}

    world.registry.submit(many)
    world.instances[0].run("changes")

    assert lacking in world.replica()["structures"]
    assert lacking in world.registry.asked


@pytest.mark.parametrize("has_log", [True, False])
def test_one_that_a_list_leaves_out_is_not_deleted(tmp_path: Path, has_log: bool) -> None:
    world = started(tmp_path, has_log=has_log)
    world.registry.submit({ONE: ("https://example.org/moved",)})
    world.registry.unlisted = {TWO}

    with pytest.raises(RetriableError, match="does not list, and yet holds"):
        world.instances[0].run("changes")

    world.registry.unlisted = set()
    world.instances[0].run("changes")
    assert sorted(world.replica()["structures"]) == sorted([LIST, ONE, TWO])


@pytest.mark.parametrize("has_log", [True, False])
def test_more_deletions_than_the_limit_allows_stop_the_run(tmp_path: Path, has_log: bool) -> None:
    world = started(tmp_path, has_log=has_log, source={**SOURCE, "shrink_limit": {"share": 0.5, "count": 1}})
    lists = {registry.urn(f"CL_{number}"): ("x",) for number in range(20)}
    world.registry.submit(lists)
    world.instances[0].run("changes")

    world.registry.submit({}, delete=[ONE, TWO])
    with pytest.raises(ConfigurationError, match="2 are gone of the 2 structures that were published, and 1 may be"):
        world.instances[0].run("changes")

    assert {ONE, TWO} <= world.replica()["structures"].keys()


def test_none_at_all_is_ordinary(tmp_path: Path) -> None:
    world = started(tmp_path)

    world.registry.submit({}, delete=[ONE, TWO])
    world.instances[0].run("changes")

    assert sorted(world.replica()["structures"]) == [LIST]


def test_only_those_that_a_selector_selects_are_published(tmp_path: Path) -> None:
    other = registrations.urn("bis-1", "BIS")
    source = {**SOURCE, "select": ["Registration=BIS:*(*)"]}
    world = World(tmp_path, source=source)
    world.registry.hides_registrations = True
    world.registry.submit({LIST: ("a",)})
    world.registry.submit({ONE: ("https://example.org/1",), other: ("https://example.org/2",)})
    world.instances[0].run("full")
    assert sorted(world.replica()["structures"]) == [other]

    world.registry.submit({}, delete=[ONE])
    world.registry.submit({other: ("https://example.org/moved",)})
    world.instances[0].run("changes")

    assert b"https://example.org/moved" in world.replica()["structures"][other]


def test_routes_send_them_to_topics_of_their_own(tmp_path: Path) -> None:
    routes = {"topics": ["structures"], "routes": [{"select": "Registration=*:*(*)", "topics": ["data-{agency}"]}]}
    world = started(tmp_path, topics=routes)

    assert sorted(world.replica()["data-ECB"]) == [ONE, TWO]


def test_a_refused_one_is_kept_in_quarantine_and_published_when_it_is_retried(tmp_path: Path) -> None:
    strict = {"rules": {"schema": "error"}}
    world = World(tmp_path, source=SOURCE, quality=strict)
    world.registry.hides_registrations = True
    world.registry.submit({LIST: ("a",)})
    # Its data source is no address.
    world.registry.submit({ONE: ("https://example.org/1",), TWO: ("http://[",)})
    world.instances[0].run("full")
    assert TWO not in world.replica()["structures"]
    assert world.instances[0].quarantined() >= 1

    world.instances[0].retry(World(tmp_path / "other", source=SOURCE).publication)

    assert TWO in world.replica()["structures"]


def test_a_refused_one_is_left_to_the_next_run_when_some_registration_changed_since(tmp_path: Path) -> None:
    strict = {"rules": {"schema": "error"}}
    world = World(tmp_path, source=SOURCE, quality=strict)
    world.registry.hides_registrations = True
    world.registry.submit({LIST: ("a",)})
    world.registry.submit({TWO: ("http://[",)})
    world.instances[0].run("full")

    world.registry.submit({TWO: ("http://[]",)})
    world.instances[0].retry(World(tmp_path / "other", source=SOURCE).publication)

    assert TWO not in world.replica()["structures"]


def test_a_gap_of_the_log_is_closed_with_them(tmp_path: Path) -> None:
    world = started(tmp_path, hides=False)

    world.registry.submit({ONE: ("https://example.org/moved",)}, delete=[TWO])
    world.registry.forgotten = len(world.registry.log)
    world.registry.submit({LIST: ("b",)})
    world.instances[0].run("changes")

    assert sorted(world.replica()["structures"]) == sorted([LIST, ONE])
    assert b"https://example.org/moved" in world.replica()["structures"][ONE]


def test_a_flush_sends_them_again(tmp_path: Path) -> None:
    world = started(tmp_path)

    world.instances[0].run("full")

    assert [sorted(keys) for keys in records_of(world)] == [sorted([LIST, ONE, TWO])]


def test_a_past_transaction_that_only_hides_them_is_reported_as_missing(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.registry.submit({ONE: ("https://example.org/moved",)})
    at = world.registry.log[-1].at

    with pytest.raises(ConfigurationError, match="transaction 3"):
        world.instances[0].past((at, at.replace(minute=at.minute + 1)))
    assert at > NOON
