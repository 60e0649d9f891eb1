"""What a registry's transactions become: literal cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from contexture.errors import ConfigurationError, DefectError
from contexture.records.changes import ChangeKind, ShrinkGuard
from contexture.records.changes.structure_changes import (
    NO_CONTENT,
    HeldStructure,
    PublishMode,
    Routes,
    StructureEvent,
    newly_routed,
)
from contexture.records.changes.structure_plan import StructurePlan, StructureRun, plan_structures
from contexture.records.topics.structure_routes import Router

LIST = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:"
FLOW = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=X:"
A, A2, B = f"{LIST}A(1.0)", f"{LIST}A(2.0)", f"{LIST}B(1.0)"
F = f"{FLOW}F(1.0)"


@dataclass(frozen=True)
class Route:
    select: str
    topics: Sequence[str]


def router(**topics: str) -> Router:
    return Router([Route(select, [topic]) for topic, select in topics.items()])


ONE = router(t="*")
LATEST = router(latest="*=*:*(~)")


def upsert(event: int, urn: str, content: str, transaction: int | None = None, *references: str) -> StructureEvent:
    return StructureEvent(event, "upsert", urn, transaction, None, content.encode(), references)


def other(event: int, operation: str, urn: str | None, transaction: int | None = None) -> StructureEvent:
    return StructureEvent(event, operation, urn, transaction)  # type: ignore[arg-type]


def had(**contents: str) -> dict[str, HeldStructure]:
    return {globals()[name]: HeldStructure(content.encode(), ("t",)) for name, content in contents.items()}


def planned(
    events: Sequence[StructureEvent],
    held: Mapping[str, HeldStructure] | None = None,
    routes: Routes = ONE,
    *,
    everything: bool = False,
    sends: bool = True,
    deletes: bool = True,
    **run: object,
) -> StructurePlan:
    mode = PublishMode(7, everything=everything, sends=sends, deletes=deletes)
    return plan_structures(events, held or {}, routes, StructureRun(mode, **run))  # type: ignore[arg-type]


def sent(plan: StructurePlan) -> list[tuple[int | None, str]]:
    """Each transaction: its number, and its records as `+X:A(1.0)>t`."""
    shown = []
    for transaction in plan.transactions:
        records = [
            f"{'-' if record.event is None else '+'}{record.urn.partition('=')[2]}>{record.topic}"
            for record in transaction.records
        ]
        assert transaction.deletions == all(record.event is None for record in transaction.records)
        shown.append((transaction.id, " ".join(records)))
    return shown


def test_each_transaction_of_the_registry_is_sent_by_itself_its_deletions_last():
    events = [upsert(0, A, "a", 4), upsert(1, B, "b", 4), upsert(2, A, "c", 6), other(3, "delete", B, 6)]

    plan = planned(events)

    assert sent(plan) == [(4, "+X:A(1.0)>t +X:B(1.0)>t"), (6, "+X:A(1.0)>t"), (6, "-X:B(1.0)>t")]
    assert plan.changes == {A: HeldStructure(b"c", ("t",), sequence=7)}
    assert (plan.upserts, plan.deletes, plan.repeated) == (3, 1, 0)


def test_what_the_target_has_by_then_is_left_out():
    events = [upsert(0, A, "a", 4), upsert(1, A, "b", 5), upsert(2, A, "b", 6), upsert(3, A, "a", 7)]

    plan = planned(events, had(A="a"))

    assert sent(plan) == [(5, "+X:A(1.0)>t"), (7, "+X:A(1.0)>t")]
    assert [plan.verdicts[event] for event in range(4)] == [
        ChangeKind.UNCHANGED,
        ChangeKind.SEND,
        ChangeKind.UNCHANGED,
        ChangeKind.SEND,
    ]


def test_registrations_have_a_limit_of_their_own_even_where_the_log_reports_their_end():
    registration = "urn:sdmx:org.sdmx.infomodel.registry.Registration=X:"
    held = {f"{registration}r{number}(1.0)": HeldStructure(b"r", ("t",)) for number in range(4)}
    held |= {f"{LIST}L{number}(1.0)": HeldStructure(b"l", ("t",)) for number in range(40)}
    ended = [other(number, "delete", urn, 5) for number, urn in enumerate(held) if "Registration" in urn]
    guard = ShrinkGuard(0.5, 1)

    with pytest.raises(ConfigurationError, match="4 are gone of the 4 structures"):
        planned(ended, held, guard=guard)
    assert planned(ended[:2], held, guard=guard).deletes == 2
    assert planned(ended, held, guard=guard, confirmed=True).deletes == 4
    lists = [other(number, "delete", urn, 5) for number, urn in enumerate(held) if "Codelist" in urn]
    assert planned(lists, held, guard=guard).deletes == 40


def test_a_flush_sends_everything_and_what_is_gone():
    events = [upsert(0, A, "a"), upsert(1, B, "b")]

    plan = planned(events, had(A="a", F="f"), everything=True, proves_absence=True, newest=9)

    assert sent(plan) == [(9, "+X:A(1.0)>t +X:B(1.0)>t"), (9, "-X:F(1.0)>t")]
    assert plan.changes[F] is None


def test_a_baseline_becomes_state_and_sends_nothing():
    plan = planned([upsert(0, A, "a")], sends=False, proves_absence=True)

    assert sent(plan) == []
    assert plan.changes == {A: HeldStructure(b"a", ("t",), sequence=7)}
    assert (plan.upserts, plan.verdicts) == (0, {0: ChangeKind.UNCHANGED})


def test_what_is_referred_to_comes_first_and_is_deleted_last():
    events = [upsert(0, F, "f", 1, B), upsert(1, A, "a", 1, B), upsert(2, B, "b", 1)]
    events += [other(3, "delete", urn, 2) for urn in (B, A, F)]

    assert sent(planned(events)) == [
        (1, "+X:B(1.0)>t +X:A(1.0)>t +X:F(1.0)>t"),
        (2, "-X:F(1.0)>t -X:A(1.0)>t -X:B(1.0)>t"),
    ]


def test_within_one_transaction_the_last_word_holds():
    plan = planned([upsert(0, A, "a", 1), upsert(1, A, "b", 1), upsert(2, B, "b", 1), other(3, "delete", B, 1)])

    assert sent(plan) == [(1, "+X:A(1.0)>t")]
    assert plan.transactions[0].records[0].event == 1
    assert plan.repeated == 2
    assert [plan.verdicts[event] for event in range(3)] == [
        ChangeKind.SUPERSEDED,
        ChangeKind.SEND,
        ChangeKind.SUPERSEDED,
    ]
    assert plan.changes.keys() == {A}


def test_contradictions_in_a_snapshot_are_refused_and_delete_nothing():
    events = [upsert(0, A, "a"), upsert(1, A, "b"), upsert(2, B, "b"), upsert(3, B, "b")]

    plan = planned(events, had(A="x"), refuses_contradictions=True, proves_absence=True)

    assert sent(plan) == [(None, "+X:B(1.0)>t")]
    assert [(each.event, each.rule) for each in plan.refused] == [(0, "duplicate"), (1, "duplicate")]
    assert plan.changes[A] == HeldStructure(b"x", ("t",), withheld=True)
    assert (plan.verdicts[0], plan.repeated) == (ChangeKind.QUARANTINED, 1)


def test_what_the_log_shows_after_a_gap_recovery_contradicts_nothing():
    events = [upsert(0, B, "b", 3), upsert(1, A, "a", 4), upsert(2, A, "b", 5)]

    plan = planned(events, had(A="x"), refuses_contradictions=True, proves_absence=True)

    assert sent(plan) == [(3, "+X:B(1.0)>t"), (4, "+X:A(1.0)>t"), (5, "+X:A(1.0)>t")]
    assert plan.refused == ()


def test_a_refused_structure_keeps_what_the_target_has_until_the_registry_deletes_it():
    refused = planned([other(0, "refused", A, 3), upsert(1, B, "b", 3)], had(A="a"))
    gone = planned([other(0, "refused", A, 3), other(1, "delete", A, 4)], had(A="a"))
    came_back = planned([other(0, "delete", A, 3), other(1, "refused", A, 4)], had(A="a"))
    repaired = planned([upsert(0, A, "a", 5)], {A: HeldStructure(b"a", ("t",), withheld=True)})

    assert sent(refused) == [(3, "+X:B(1.0)>t")]
    assert refused.changes[A] == HeldStructure(b"a", ("t",), withheld=True)
    assert sent(gone) == [(4, "-X:A(1.0)>t")]
    assert sent(came_back) == [(3, "-X:A(1.0)>t")]
    assert sent(repaired) == []
    assert repaired.changes == {A: HeldStructure(b"a", ("t",))}


def test_a_refused_structure_is_not_absent_and_one_without_a_name_shows_nothing():
    held = {f"{LIST}C{number}(1.0)": HeldStructure(b"c", ("t",)) for number in range(20)} | had(A="a")
    shown = [other(number, "present", urn) for number, urn in enumerate(held) if urn != A]

    seen = planned([*shown, other(99, "refused", A)], held, proves_absence=True)
    unnamed = planned([*shown, other(99, "refused", None)], held, proves_absence=True)

    assert (sent(seen), seen.verdicts[99]) == ([], ChangeKind.QUARANTINED)
    assert sent(unnamed) == [(None, "-X:A(1.0)>t")]


def test_what_the_form_cannot_express_stays_and_gives_no_record():
    new = planned([other(0, "inexpressible", A, 3)])
    known = planned([other(0, "inexpressible", A, 3)], had(A="a"))
    deleted = planned([other(0, "delete", A, 4)], {A: HeldStructure(NO_CONTENT, ())})
    expressed = planned([upsert(0, A, "a", 4)], {A: HeldStructure(NO_CONTENT, ())})

    assert (sent(new), new.changes) == ([], {A: HeldStructure(NO_CONTENT, (), sequence=7)})
    assert (sent(known), known.changes) == ([], {A: HeldStructure(b"a", ("t",), withheld=True)})
    assert (sent(deleted), deleted.changes, deleted.deletes) == ([], {A: None}, 0)
    assert sent(expressed) == [(4, "+X:A(1.0)>t")]
    assert new.verdicts == {0: ChangeKind.PRESENT}


def test_the_deletion_of_what_was_never_held_is_no_record():
    plan = planned([other(0, "delete", A, 3)])

    assert (sent(plan), plan.changes, plan.deletes) == ([], {}, 0)


def test_a_flush_ends_what_the_log_deleted_though_only_another_instance_may_have_sent_it():
    plan = planned([upsert(0, A, "a"), other(1, "delete", B)], had(A="a"), everything=True, newest=9)

    assert sent(plan) == [(9, "+X:A(1.0)>t"), (9, "-X:B(1.0)>t")]
    assert (plan.changes.keys(), plan.deletes) == ({A}, 1)


def test_without_deletions_state_forgets_and_nothing_is_sent():
    plan = planned([other(0, "delete", A, 3)], had(A="a"), deletes=False)

    assert (sent(plan), plan.changes, plan.deletes) == ([], {A: None}, 0)


def test_a_structure_leaves_the_topics_that_no_longer_select_it():
    plan = planned([upsert(0, A, "a", 3)], {A: HeldStructure(b"a", ("old", "lists"))}, router(lists="*", new="*"))

    assert sent(plan) == [(3, "+X:A(1.0)>new"), (3, "-X:A(1.0)>old")]
    assert plan.changes[A] == HeldStructure(b"a", ("lists", "new"), sequence=7)


def test_a_structure_that_no_route_selects_is_counted_and_known():
    plan = planned([upsert(0, A, "a", 3)], routes=router(flows="Dataflow=*:*(*)"))

    assert (sent(plan), plan.unrouted) == ([], (A,))
    assert plan.changes == {A: HeldStructure(b"a", (), sequence=7)}
    assert plan.topics == {0: ()}


def test_tombstones_go_where_an_earlier_transaction_of_the_run_has_sent_it():
    plan = planned(
        [upsert(0, A, "b", 3), other(1, "delete", A, 4)], {A: HeldStructure(b"a", ("old",))}, router(new="*")
    )

    assert sent(plan) == [(3, "+X:A(1.0)>new"), (3, "-X:A(1.0)>old"), (4, "-X:A(1.0)>new")]


def test_a_new_latest_version_pushes_the_one_before_out():
    plan = planned([upsert(0, A2, "b", 3)], {A: HeldStructure(b"a", ("latest",))}, LATEST)

    assert sent(plan) == [(3, "+X:A(2.0)>latest"), (3, "-X:A(1.0)>latest")]
    assert plan.changes[A] == HeldStructure(b"a", ())


def test_an_older_version_that_becomes_the_latest_is_sent_if_it_was_landed():
    held = {A: HeldStructure(b"a", ()), A2: HeldStructure(b"b", ("latest",))}
    deleted = other(1, "delete", A2, 3)

    landed = planned([upsert(0, A, "a", 3), deleted], held, LATEST)
    missing = planned([deleted], held, LATEST)

    assert newly_routed(LATEST, [A, A2], [A]) == (A,)
    assert sent(landed) == [(3, "+X:A(1.0)>latest"), (3, "-X:A(2.0)>latest")]
    assert landed.unserved == ()
    assert (sent(missing), missing.unserved) == ([(3, "-X:A(2.0)>latest")], (A,))
    assert A not in missing.changes


def test_a_change_brings_nothing_new_to_other_artefacts():
    assert newly_routed(LATEST, [A, B], [A2, B]) == ()
    assert newly_routed(router(flows="Dataflow=*:*(*)"), [A, A2], [A]) == ()


def test_a_topic_that_kafka_refuses_holds_the_structure_back():
    far = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=" + "X" * 250 + ":A(1.0)"
    routes = Router([Route("*", ["of-{agency}"])])

    plan = planned([upsert(0, far, "a", 3), upsert(1, A, "a", 3)], {far: HeldStructure(b"x", ("t",))}, routes)

    assert sent(plan) == [(3, "+X:A(1.0)>of-X")]
    assert [(each.event, each.rule) for each in plan.refused] == [(0, "topic-name")]
    assert plan.verdicts[0] == ChangeKind.QUARANTINED
    assert plan.changes[far] == HeldStructure(b"x", ("t",), withheld=True)


def test_topics_that_are_one_for_kafka_stop_the_run():
    with pytest.raises(ConfigurationError, match=r"a\.b and a_b as one topic"):
        planned([upsert(0, A, "a", 3)], {B: HeldStructure(b"b", ("a.b",))}, router(a_b="*"))


@pytest.fixture
def many() -> dict[str, HeldStructure]:
    return {f"{LIST}C{number}(1.0)": HeldStructure(b"c", ("t",)) for number in range(40)}


def test_more_than_may_vanish_stops_the_run_unless_a_person_confirms(many):
    shown = [other(number, "present", urn) for number, urn in enumerate([*many][:29])]
    guard = ShrinkGuard(0.2, 10)

    with pytest.raises(ConfigurationError, match="11 are gone of the 40 structures that were published, and 10 may be"):
        planned(shown, many, proves_absence=True, guard=guard)
    assert planned(shown, many, proves_absence=True, guard=guard, confirmed=True).deletes == 11
    counted = planned(shown, many, proves_absence=True, guard=guard, stops_shrinking=False)
    assert (counted.deletes, counted.dropped) == (11, 11)
    assert planned([*shown, other(29, "present", [*many][29])], many, proves_absence=True, guard=guard).deletes == 10


def test_an_empty_snapshot_deletes_nothing_however_little_is_held():
    with pytest.raises(ConfigurationError, match="an empty response deletes nothing"):
        planned([], had(A="a"), proves_absence=True)
    assert sent(planned([], had(A="a"), proves_absence=True, confirmed=True)) == [(None, "-X:A(1.0)>t")]


def test_what_the_log_deletes_behind_a_catch_up_ends_there_and_is_not_guarded(many):
    gone = [*many][:30]
    events = [other(number, "present", urn, 4) for number, urn in enumerate([*many][30:39])]
    events += [other(len(events) + number, "delete", urn, 6) for number, urn in enumerate(gone)]

    plan = planned(events, many, proves_absence=True)

    assert [(transaction.id, len(transaction.records)) for transaction in plan.transactions] == [(4, 1), (6, 30)]
    assert plan.deletes == 31


def test_what_a_partial_landing_lacks_is_still_there(many):
    assert sent(planned([], many)) == []


def test_a_landing_that_goes_back_in_the_log_is_a_defect():
    with pytest.raises(DefectError, match="transaction 3 behind 4"):
        planned([upsert(0, A, "a", 4), upsert(1, B, "b", 3)])
