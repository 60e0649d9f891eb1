"""What holds whatever a registry does and however its changes are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contexture.records.changes.structure_changes import (
    HeldStructure,
    PlannedTransaction,
    PublishMode,
    Routes,
    StructureEvent,
    newly_routed,
)
from contexture.records.changes.structure_plan import StructurePlan, StructureRun, plan_structures
from contexture.records.topics.structure_routes import Router

pytestmark = pytest.mark.slow

LIST = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:"
FLOW = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=X:F(1.0)"
URNS = [f"{LIST}A(1.0)", f"{LIST}A(2.0)", f"{LIST}A(2.1)", f"{LIST}B(1.0)", FLOW]
GOOD = "abc"


@dataclass(frozen=True)
class Route:
    select: str
    topics: Sequence[str]


ROUTES: list[Routes] = [
    Router([Route("*", ["one", "two"])]),
    Router([Route("*=*:*(~)", ["latest"]), Route("Codelist=*:*(*)", ["lists-{class}"])]),
    Router([Route("Codelist=*:A(2.0+)", ["second"]), Route("Dataflow=*:*(*)", ["flows"])]),
]

CONTENTS = st.dictionaries(st.sampled_from(URNS), st.sampled_from(GOOD), min_size=1, max_size=4)
CHANGES = st.tuples(CONTENTS | st.just({}), st.sets(st.sampled_from(URNS), max_size=3))
HISTORIES = st.lists(CHANGES, max_size=9)
RUNS = st.lists(st.sampled_from(["log", "gap", "snapshot", "full", "later"]), min_size=9, max_size=9)


def references(urn: str, content: str) -> tuple[str, ...]:
    """By the content, so that what refers to what changes too, with circles among it."""
    return tuple(other for place, other in enumerate(URNS) if other != urn and (place + ord(content)) % 3 == 0)


@dataclass
class World:
    """A registry, what was published of it, and who reads that."""

    routes: Routes
    there: dict[str, str] = field(default_factory=dict)
    log: list[tuple[int, dict[str, str], list[str], tuple[str, ...]]] = field(default_factory=list)
    held: dict[str, HeldStructure] = field(default_factory=dict)
    replica: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    watermark: int = 0
    sent: list[PlannedTransaction] = field(default_factory=list)

    def change(self, put: Mapping[str, str], deleted: set[str]) -> None:
        gone = sorted((deleted - put.keys()) & self.there.keys())
        before = dict(self.there)
        self.there = {urn: content for urn, content in {**self.there, **put}.items() if urn not in gone}
        moved = newly_routed(self.routes, before, self.there)
        self.log.append((len(self.log) + 1, dict(put), gone, moved))

    def run(self, mode: str) -> StructurePlan:
        events, contents = {"log": self._log, "gap": self._gap}.get(mode, self._snapshot)()
        plan = plan_structures(
            events,
            self.held,
            self.routes,
            StructureRun(
                PublishMode(1, everything=mode == "full"),
                newest=len(self.log),
                proves_absence=mode != "log",
                refuses_contradictions=mode != "log",
                confirmed=True,
            ),
        )
        self._apply(plan, contents)
        self.watermark = len(self.log)
        return plan

    def _gap(self) -> tuple[list[StructureEvent], dict[int, str]]:
        """The log has only the newer half: what it didn't change comes as it is now, then the log."""
        until = (self.watermark + len(self.log)) // 2
        changed = {urn for _, put, _, _ in self.log[until:] for urn in put}
        stayed = {urn: content for urn, content in self.there.items() if urn not in changed}
        events = [upsert(number, urn, content, until) for number, (urn, content) in enumerate(stayed.items())]
        log, contents = self._log(until, len(events))
        return events + log, dict(enumerate(stayed.values())) | contents

    def _log(self, after: int | None = None, first: int = 0) -> tuple[list[StructureEvent], dict[int, str]]:
        events: list[StructureEvent] = []
        contents: dict[int, str] = {}
        after = self.watermark if after is None else after
        at = self._before(after)
        for number, put, gone, moved in self.log[after:]:
            at = {urn: content for urn, content in {**at, **put}.items() if urn not in gone}
            for urn in [*put, *(each for each in moved if each not in put)]:
                contents[first + len(events)] = at[urn]
                events.append(upsert(first + len(events), urn, at[urn], number))
            end = first + len(events)
            events += [StructureEvent(end + place, "delete", urn, number) for place, urn in enumerate(gone)]
        return events, contents

    def _before(self, until: int) -> dict[str, str]:
        at: dict[str, str] = {}
        for _, put, gone, _ in self.log[:until]:
            at = {urn: content for urn, content in {**at, **put}.items() if urn not in gone}
        return at

    def _snapshot(self) -> tuple[list[StructureEvent], dict[int, str]]:
        events = [upsert(number, urn, content) for number, (urn, content) in enumerate(self.there.items())]
        return events, dict(enumerate(self.there.values()))

    def _apply(self, plan: StructurePlan, contents: Mapping[int, str]) -> None:
        for transaction in plan.transactions:
            for record in transaction.records:
                if record.event is None:
                    assert record.urn in self.replica[record.topic], "a tombstone for what no topic has"
                    del self.replica[record.topic][record.urn]
                else:
                    self.replica[record.topic][record.urn] = contents[record.event]
        self.sent += plan.transactions
        for urn, held in plan.changes.items():
            if held is None:
                del self.held[urn]
            else:
                self.held[urn] = held

    def expected(self) -> dict[str, dict[str, str]]:
        topics: dict[str, dict[str, str]] = defaultdict(dict)
        for urn, names in self.routes.route(sorted(self.there), held=sorted(self.there)).topics.items():
            for name in names:
                topics[name][urn] = self.there[urn]
        return topics

    def read(self) -> dict[str, dict[str, str]]:
        return {topic: held for topic, held in self.replica.items() if held}


def upsert(event: int, urn: str, content: str, transaction: int | None = None) -> StructureEvent:
    return StructureEvent(event, "upsert", urn, transaction, None, content.encode(), references(urn, content))


@settings(max_examples=300, deadline=None)
@given(HISTORIES, RUNS, st.sampled_from(ROUTES))
def test_who_applies_the_records_has_what_the_registry_holds_after_every_run(histories, runs, routes):
    world = World(routes)
    for (put, deleted), mode in zip(histories, runs, strict=False):
        world.change(put, deleted)
        if mode != "later":
            world.run(mode)
            assert world.read() == world.expected()
    world.run("log")
    assert world.read() == world.expected()
    assert {urn: set(held.topics) for urn, held in world.held.items() if held.topics} == {
        urn: {topic for topic, held in world.read().items() if urn in held}
        for urn in world.there
        if any(urn in held for held in world.read().values())
    }


@settings(max_examples=200, deadline=None)
@given(HISTORIES, st.sets(st.integers(0, 8)), st.sampled_from(ROUTES))
def test_it_makes_no_difference_where_runs_cut_the_log(histories, cuts, routes):
    at_once, in_pieces = World(routes), World(routes)
    for number, (put, deleted) in enumerate(histories):
        at_once.change(put, deleted)
        in_pieces.change(put, deleted)
        if number in cuts:
            in_pieces.run("log")
    at_once.run("log")
    in_pieces.run("log")

    assert [shape(transaction) for transaction in at_once.sent if not transaction.deletions] == [
        shape(transaction) for transaction in in_pieces.sent if not transaction.deletions
    ]
    assert [(each.id, {*shape(each)}) for each in at_once.sent] == [
        (each.id, {*shape(each)}) for each in in_pieces.sent
    ]


def shape(transaction: PlannedTransaction) -> list[tuple[str, str]]:
    return [(record.urn, record.topic) for record in transaction.records]


@settings(max_examples=200, deadline=None)
@given(HISTORIES, st.sampled_from(ROUTES))
def test_transactions_are_in_order_pure_and_name_a_place_once(histories, routes):
    world = World(routes)
    for put, deleted in histories:
        world.change(put, deleted)
    world.run("log")
    places = [(each.id, each.deletions) for each in world.sent]
    assert places == sorted(set(places))
    for transaction in world.sent:
        assert transaction.records
        assert all((record.event is None) == transaction.deletions for record in transaction.records)
        assert len(set(shape(transaction))) == len(transaction.records)


@settings(max_examples=200, deadline=None)
@given(CONTENTS)
def test_what_is_referred_to_comes_before_what_refers_to_it(contents):
    world = World(ROUTES[0])
    world.change(contents, set())
    plan = world.run("log")
    order = [record.urn for record in plan.transactions[0].records]
    circles = [set(cycle) for cycle in plan.cycles]
    for urn, content in contents.items():
        for other in references(urn, content):
            if other in contents and not any({urn, other} <= circle for circle in circles):
                assert order.index(other) < order.index(urn)


@settings(max_examples=200, deadline=None)
@given(HISTORIES, st.sampled_from(ROUTES))
def test_reading_the_same_again_sends_nothing(histories, routes):
    world = World(routes)
    for put, deleted in histories:
        world.change(put, deleted)
    world.run("log")
    assert world.run("snapshot").transactions == ()
    assert world.run("log").changes == {}


@settings(max_examples=100, deadline=None)
@given(HISTORIES, st.sampled_from(ROUTES))
def test_a_baseline_gives_the_state_that_a_first_load_gives_and_sends_nothing(histories, routes):
    world = World(routes)
    for put, deleted in histories:
        world.change(put, deleted)
    baseline = StructureRun(PublishMode(1, sends=False), proves_absence=True)
    plan = plan_structures(world._snapshot()[0], {}, routes, baseline)
    world.run("snapshot")
    assert (plan.transactions, plan.changes) == ((), world.held)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(URNS), st.sampled_from([*GOOD, "!", "-"])), max_size=12), st.data())
def test_a_refused_structure_stays_as_it_was_wherever_runs_cut_the_log(changes, data):
    """`!` is a content that a rule refuses, `-` a deletion."""
    held: dict[str, HeldStructure] = {}
    replica: dict[str, str] = {}
    expected: dict[str, str] = {}
    start = 0
    while start < len(changes):
        end = data.draw(st.integers(start + 1, len(changes)))
        operations = {"!": "refused", "-": "delete"}
        events = [
            StructureEvent(number, operations.get(content, "upsert"), urn, number + 1, None, content.encode())
            for number, (urn, content) in enumerate(changes[start:end], start)
        ]
        plan = plan_structures(events, held, ROUTES[0], StructureRun(PublishMode(1)))
        for record in (record for transaction in plan.transactions for record in transaction.records):
            if record.event is None:
                replica.pop(record.urn, None)
            else:
                replica[record.urn] = changes[record.event][1]
        held = {urn: row for urn, row in {**held, **plan.changes}.items() if row is not None}
        for urn, content in changes[start:end]:
            if content == "-":
                expected.pop(urn, None)
            elif content != "!":
                expected[urn] = content
        assert replica == expected
        assert held.keys() == expected.keys()
        start = end
