"""Supervises the process that tests inputs: one that dies, hangs or eats memory is a finding, and is replaced."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any

from tools.fuzz.target import Target
from tools.fuzz.trial import HANG_SECONDS
from tools.fuzz.worker import Done, Fault, Notes, Work, run

STUCK_SECONDS = 10 * HANG_SECONDS
"""Of a case by the clock on the wall, with other work on the machine: it waits for something."""
_LOOK_SECONDS = 0.1
_REPLACEMENTS = 20


@dataclass(slots=True)
class Result:
    """What came of one target."""

    target: Target
    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    peak_bytes: int = 0
    ways: int = 0
    faults: dict[str, bytes] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Cases a second."""
        return self.cases / self.seconds if self.seconds else 0.0


def fuzz_target(target: Target, seed: int, seconds: float, cases: int | None, report: Callable[[str], None]) -> Result:
    """Tests inputs on a target for a time, or up to a number of cases; reports each fault."""
    result, until, number, after = Result(target), time.monotonic() + seconds, 0, 0
    while number < _REPLACEMENTS and (left := until - time.monotonic()) > 0 and result.cases != cases:
        more = None if cases is None else cases - result.cases
        work = Work(target, f"{seed}.{number}", left, more, after)
        tried = _watched(work, result)
        # The input that did it is one of the first, or comes of another seed.
        after, number = after + tried + 1, number + 1
    for fault in result.faults:
        report(f"{target.name}: {fault}")
    return result


def _watched(work: Work, result: Result) -> int:
    """Runs one worker to its end; how many cases it tried."""
    context, notes = multiprocessing.get_context("fork"), Notes()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(work, notes, theirs))
    started = time.monotonic()
    process.start()
    theirs.close()
    while process.is_alive() and not _is_stuck(notes, started):
        if ours.poll(_LOOK_SECONDS) and not _received(ours, result):
            break
    ended = _ended(process)
    while ours.poll() and _received(ours, result):
        pass
    number, _, data = notes.read()
    if ended:
        result.faults.setdefault(ended, data)
        result.cases, result.seconds = result.cases + number, result.seconds + time.monotonic() - started
    return number


def _received(pipe: Any, result: Result) -> bool:
    try:
        message = pipe.recv()
    except EOFError:
        return False
    if isinstance(message, Fault):
        known = result.faults.get(message.what)
        if known is None or len(message.data) < len(known):
            result.faults[message.what] = message.data
    elif isinstance(message, Done):
        result.cases, result.seconds = result.cases + message.cases, result.seconds + message.seconds
        result.slowest, result.ways = max(result.slowest, message.slowest), max(result.ways, message.ways)
        result.peak_bytes = max(result.peak_bytes, message.peak_bytes)
    return True


def _is_stuck(notes: Notes, started: float) -> bool:
    _, since, _ = notes.read()
    return time.monotonic() - (since or started) > STUCK_SECONDS


def _ended(process: BaseProcess) -> str:
    """How a worker ended; "" where it came to its end."""
    process.join(STUCK_SECONDS if process.exitcode is None and not process.is_alive() else 1.0)
    if process.is_alive():
        process.kill()
        process.join()
        return f"stuck: no end within {STUCK_SECONDS:.0f} s"
    code = process.exitcode or 0
    if code == -signal.SIGPROF:
        return f"hang: more than {HANG_SECONDS:.0f} s of CPU time"
    if code < 0:
        return f"crash: {signal.Signals(-code).name}"
    return f"crash: exit code {code}" if code else ""
