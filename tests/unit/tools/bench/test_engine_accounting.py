"""What processes have cost: read from the kernel's lines, added up over trees that processes leave and join."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tools.bench.engines.accounting import (
    ProcessorTime,
    ProcessTimes,
    command_line,
    mapped_files,
    open_files,
    tree_seconds,
)
from tools.bench.engines.watching import MemoryWatch, proportional_mib

LINE = "4711 (odd name) 1) S 42 4711 4711 0 -1 4194560 9 8 7 6 150 50 25 75 20 0 1 0 100 200 300"


def test_the_parent_and_all_four_times_are_read_whatever_the_programs_name() -> None:
    # 150 and 50 ticks of its own, 25 and 75 of children that were waited for.
    assert ProcessTimes.parsed(LINE, ticks=100) == ProcessTimes(parent=42, seconds=3.0)


def test_a_tree_is_a_process_and_all_below_it() -> None:
    times = {
        10: ProcessTimes(1, 1.0),
        11: ProcessTimes(10, 2.0),
        12: ProcessTimes(11, 4.0),
        20: ProcessTimes(1, 8.0),
    }
    assert tree_seconds(10, times) == 7.0
    assert tree_seconds(20, times) == 8.0
    assert tree_seconds(99, times) == 0.0


def test_time_counts_from_the_moment_the_books_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    # A server 11 under its process guard 10; what it started, 12, ends up under the guard.
    moments = iter(
        [
            {10: ProcessTimes(1, 0.5), 11: ProcessTimes(10, 2.0), 12: ProcessTimes(11, 1.0)},
            {10: ProcessTimes(1, 0.5), 11: ProcessTimes(10, 3.0), 12: ProcessTimes(10, 5.0)},
        ]
    )
    monkeypatch.setattr("tools.bench.engines.accounting.all_times", lambda: next(moments))
    assert ProcessorTime({"server": [11], "gone": [99]}).seconds() == {"server": 5.0, "gone": 0}


def test_a_process_is_known_by_its_command_line() -> None:
    # A process of pytest-xdist gives itself another name, and one that has just been started has none yet.
    waiting = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert command_line(process.pid) == " ".join(waiting)
        process.communicate(b"\n")
    assert command_line(2**30) == ""


def test_this_process_has_files_open_and_memory() -> None:
    before = open_files(os.getpid())
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(Path(os.devnull).open())
        # Others of this process may open and close theirs meanwhile.
        assert open_files(os.getpid()) >= before + 50
    assert mapped_files(os.getpid(), ".no-such-ending") == 0
    assert proportional_mib(os.getpid()) > 1
    assert proportional_mib(2**30) == 0.0


def test_the_most_of_a_kind_and_its_largest_process_are_kept_apart() -> None:
    watch = MemoryWatch([], lambda command: None)
    watch.note({"task": [10.0, 30.0], "driver": [200.0]})
    watch.note({"task": [25.0, 5.0, 5.0]})
    assert watch.most == {"task": 40.0, "driver": 200.0}
    assert watch.largest == {"task": 30.0, "driver": 200.0}
    assert watch.number == {"task": 3, "driver": 1}
