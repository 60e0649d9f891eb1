"""One case: an input, how it ended, what it cost."""

from __future__ import annotations

import signal
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tools.fuzz.target import Target

SLOW_SECONDS = 3.0
"""CPU time of one case (inputs have at most half a megabyte)."""
HANG_SECONDS = 12.0
"""CPU time after which a case is ended from outside, whatever code it is in."""
_OURS = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a case ended.

    Attributes:
        way: the same for inputs that go the same way through the parser.
        fault: what is wrong with it; "" where nothing is.
        seconds: CPU time.
    """

    way: object
    fault: str
    seconds: float


def tried(target: Target, data: bytes) -> Ending:
    """Gives an input to a parser. A case that hangs ends the process (SIGPROF)."""
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    started = time.process_time()
    try:
        way, fault = _parsed(target, data)
    finally:
        seconds = time.process_time() - started
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Ending(way, fault or ("slow" if seconds > SLOW_SECONDS else ""), seconds)


def _parsed(target: Target, data: bytes) -> tuple[object, str]:
    try:
        return target.parse(data), ""
    except target.allowed as error:
        return (type(error).__name__, _place(error)), ""
    except Exception as error:  # which ones come out is the question
        place = _place(error)
        return (type(error).__name__, place), f"{type(error).__name__} at {place}"


def _place(error: BaseException) -> str:
    """Where in our code an error came from: file and line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_ours(frame.filename)] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"


def _is_ours(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_OURS) and ".venv" not in path.parts
