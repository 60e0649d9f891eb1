"""The look at processes that other tests of this folder trust."""

from __future__ import annotations

import os
import subprocess
import sys

from e2e.processes import Process, alive, command_line, descendants

SLEEP = [sys.executable, "-c", "input()"]


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEP, stdin=subprocess.PIPE)


def test_a_child_is_found_with_what_it_was_started_with_and_is_gone_when_it_has_ended() -> None:
    with started() as child:
        [found] = [process for process in descendants(os.getpid()) if process.pid == child.pid]
        assert alive({found}) == {found}
        assert command_line(found).rstrip() == " ".join(SLEEP)
        child.communicate(b"\n")
        assert alive({found}) == set()
        assert command_line(found) == ""


def test_another_process_that_was_given_the_number_of_an_ended_one_is_not_taken_for_it() -> None:
    [own] = [process for process in descendants(os.getpid()) if process.pid == os.getpid()]
    ended = Process(own.pid, own.started_ticks - 1)
    assert alive({ended, own}) == {own}
    assert command_line(ended) == ""
