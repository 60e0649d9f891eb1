"""The process that tries inputs: whatever they do to it, its notes say which one it was."""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import resource
import signal
import struct
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tools.fuzz.feeding import Feeding, smallest
from tools.fuzz.mutation import MAXIMUM_BYTES
from tools.fuzz.target import Target
from tools.fuzz.trial import Ending, tried

MEMORY_BYTES = 384 << 20
"""What a case may take beside what the process took at its start."""
_HEAD = struct.Struct("<Qdq")
_SHRINKING_SECONDS = 5.0


class Notes:
    """The case that is tried now, in memory that outlives the process that tries it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _HEAD.size + MAXIMUM_BYTES)
        self.number, self.data = 0, b""

    def write(self, number: int, data: bytes) -> None:
        """Notes a case before it is tried."""
        self._memory[_HEAD.size : _HEAD.size + len(data)] = data
        self._memory[: _HEAD.size] = _HEAD.pack(number, time.monotonic(), len(data))

    def read(self) -> tuple[int, float, bytes]:
        """Number, start (monotonic seconds) and input of the last case that was noted."""
        number, started, size = _HEAD.unpack(self._memory[: _HEAD.size])
        return number, started, self._memory[_HEAD.size : _HEAD.size + size]


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker is to do: for how long, or how many cases; which of the first inputs to leave out."""

    target: Target
    seed: str
    seconds: float
    cases: int | None = None
    after: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong, and the smallest input that shows it."""

    what: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker did. `peak_bytes`: how much its memory grew."""

    cases: int
    seconds: float
    slowest: float
    peak_bytes: int
    ways: int


def run(work: Work, notes: Notes, pipe: Connection) -> None:
    """Tries inputs until time or cases are over; sends a `Fault` for each new kind, and `Done` last."""
    _quiet()
    feeding = Feeding(work.target, work.seed, after=work.after)
    for data in list(work.target.inputs().values())[work.after : work.after + 1]:
        with contextlib.suppress(Exception):  # the first one loads what is loaded late
            work.target.parse(data)
    before = _peak_bytes()
    _limit_memory()
    pipe.send(_tried_all(work, feeding, notes, pipe.send, before))


def _tried_all(work: Work, feeding: Feeding, notes: Notes, send: Callable[[object], None], before: int) -> Done:
    started, cases, slowest = time.monotonic(), 0, 0.0
    known: set[str] = set()
    ways: set[object] = set()
    while time.monotonic() - started < work.seconds and cases != work.cases:
        data = feeding.next()[:MAXIMUM_BYTES]
        notes.write(cases, data)
        ending = tried(work.target, data)
        cases += 1
        slowest = max(slowest, ending.seconds)
        feeding.went(data, ending.way)
        ways.add(ending.way)
        if ending.fault and ending.fault not in known:
            known.add(ending.fault)
            send(Fault(ending.fault, _shrunk(work.target, data, ending, notes, cases)))
    return Done(cases, time.monotonic() - started, slowest, _peak_bytes() - before, len(ways))


def _shrunk(target: Target, data: bytes, ending: Ending, notes: Notes, number: int) -> bytes:
    if ending.fault == "slow":
        return data
    until = time.monotonic() + _SHRINKING_SECONDS

    def is_same(candidate: bytes) -> bool:
        notes.write(number, candidate)
        return time.monotonic() < until and tried(target, candidate).fault == ending.fault

    return smallest(data, is_same)


def _quiet() -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Libraries write to it what they think of an input.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _limit_memory() -> None:
    with pathlib.Path("/proc/self/statm").open(encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, now + MEMORY_BYTES))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
