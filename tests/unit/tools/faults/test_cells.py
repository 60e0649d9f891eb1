"""Which runs the fault matrix has."""

from __future__ import annotations

from collections import Counter

from tools.faults.matrix import NAMES, cells
from tools.faults.moments import INSIDE, MOMENTS, Moment
from tools.faults.report import by_scenario, complaints, disturbances, tables
from tools.faults.trial import Cell, Outcome
from tools.faults.verdict import Verdict


def test_every_scenario_comes_to_every_moment() -> None:
    planned = cells(len(NAMES) * len(MOMENTS), seed=1)

    assert Counter((cell.scenario, cell.moment) for cell in planned) == {
        (name, moment): 1 for name in NAMES for moment in MOMENTS
    }


def test_a_short_slice_has_every_scenario() -> None:
    assert {cell.scenario for cell in cells(len(NAMES), seed=1)} == set(NAMES)


def test_the_same_seed_gives_the_same_chance_and_another_does_not() -> None:
    first, again, other = (cells(5, seed)[4].random().random() for seed in (1, 1, 2))

    assert first == again != other


def test_what_was_not_clean_is_reported_with_what_repeats_it() -> None:
    clean = Outcome(Cell(0, "killed", Moment.MID_PRODUCE, 7), Verdict(), {Moment.MID_PRODUCE: 2}, (), 1.0)
    wrong = Outcome(Cell(1, "paused", Moment.IN_COMMIT, 7), Verdict(lost=3), {Moment.IN_COMMIT: 1}, ("odd",), 1.0)

    assert complaints([clean]) == []
    assert complaints([clean, wrong]) == [
        "run 1 (paused, in commit; seed 7): odd; Verdict(lost=3, doubled=0, reordered=0, strange=0, "
        "torn=0, scattered=0, vanished=0)"
    ]
    assert by_scenario([clean, wrong])[-1] == ("all", "2", "3", *["0"] * 7, "3", "2", "0", "1")


def test_a_run_that_was_disturbed_is_counted_and_named_and_is_not_wrong() -> None:
    cell = Cell(2, "paused", Moment.MID_PRODUCE, 7)
    disturbed = Outcome(cell, Verdict(), {}, (), 1.0, "a sender ran on that was to be stopped")

    assert disturbances([Outcome(cell, Verdict(), {}, (), 1.0), disturbed]) == [
        "run 2 (paused, mid produce; seed 7): a sender ran on that was to be stopped"
    ]
    assert complaints([disturbed]) == []
    assert by_scenario([disturbed])[-1] == ("all", "1", *["0"] * 10, "1", "0")
    assert [column.header for column in tables([disturbed])[0].columns][-2:] == ["disturbed", "problems"]


def test_only_what_lies_between_a_record_and_the_call_of_commit_is_inside() -> None:
    assert [moment for moment in MOMENTS if moment in INSIDE] == [
        Moment.MID_PRODUCE,
        Moment.BEFORE_LEDGER,
        Moment.BEFORE_COMMIT,
    ]
