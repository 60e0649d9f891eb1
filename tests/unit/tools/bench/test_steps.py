"""The rows about the steps of a run show what one more entity costs, without fixed costs."""

from __future__ import annotations

from pathlib import Path

from tools.bench.settings import Setting, Sizes
from tools.bench.steps import STEPS, StepReport, Taken

MEBIBYTE = 1 << 20
REPORT = StepReport("source", "entities")


def taken(seconds: float, stage: int, sender: int) -> Taken:
    return Taken(dict.fromkeys(STEPS, seconds), stage * MEBIBYTE, sender * MEBIBYTE)


def test_a_step_is_shown_by_what_each_costs_beyond_the_size_before() -> None:
    # A second whatever the size, 0.1 ms for each of the first thousands and 0.2 ms for each beyond.
    found = REPORT.measures({1_000: taken(1.1, 1, 1), 2_000: taken(1.2, 1, 1), 12_000: taken(3.2, 1, 1)})
    pull = found[0]
    assert pull.what == "pull of 12,000 entities (3 s), each beyond 2,000"
    assert (pull.unit, round(pull.ours[0]), round(pull.peer[0])) == ("us", 200, 100)
    assert pull.against == "each between 1,000 and 2,000"
    assert [measure.what.split()[0] for measure in found] == [*STEPS, "peak", "peak"]


def test_memory_is_compared_with_that_of_the_size_before() -> None:
    found = REPORT.measures({1_000: taken(1, 50, 60), 2_000: taken(1, 100, 70), 12_000: taken(1, 150, 80)})
    stage, sender = found[-2:]
    assert (stage.ours, stage.peer, stage.against) == ((150.0,), (100.0,), "with 2,000")
    assert (sender.ours, sender.peer) == ((80.0,), (70.0,))


def test_one_size_is_shown_without_a_comparison() -> None:
    found = REPORT.measures({500: taken(1.5, 50, 60)})
    assert (found[0].what, found[0].unit, found[0].ours, found[0].peer) == ("pull of 500 entities", "s", (1.5,), ())
    assert (found[-1].ours, found[-1].peer, found[-1].against) == ((60.0,), (), "")


def test_the_smallest_of_several_sizes_is_taken_once_before_and_one_alone_is_not() -> None:
    setting, asked = Setting(Sizes(), Path("none"), lambda line: None), list[int]()

    def take(_: Setting, size: int) -> Taken:
        asked.append(size)
        return taken(1, 1, 1)

    assert list(REPORT.taken(setting, (500, 1_000, 3_000), take)) == [500, 1_000, 3_000]
    assert asked == [500, 500, 1_000, 3_000]
    asked.clear()
    assert list(REPORT.taken(setting, (500,), take)) == [500]
    assert asked == [500]
