"""Failures of Spark as errors with an intent.

What a task raises reaches the driver as text inside a Java exception. Our own errors are found in that text again; the
rest is told by what it says.
"""

from __future__ import annotations

import re

from contexture.errors import (
    ConfigurationError,
    ContextureError,
    DefectError,
    RejectedError,
    RetriableError,
)

_INTENTS = (RetriableError, ConfigurationError, RejectedError, DefectError)
_OURS = re.compile(r"\b(?:\w+\.)*(\w+Error): (.{1,2000}?)\. Next: ([^\n]{1,1000})", re.DOTALL)
_NO_SPACE = ("No space left on device", "ENOSPC", "Disk quota exceeded")
_OUT_OF_MEMORY = ("OutOfMemoryError", "Java heap space", "MemoryError")


def intended(error: BaseException) -> ContextureError:
    """The failure as an error with an intent; an error of ours that crossed Spark comes back as what it was."""
    text = str(error)
    if any(sign in text for sign in _NO_SPACE):
        return RetriableError(
            "the disk is full",
            next_step="make room below CONTEXTURE_HOME and Spark's local folder, then retry; nothing was sent or lost",
        )
    ours = _OURS.search(text)
    if ours:
        return _kind(ours[1])(ours[2], next_step=ours[3].strip())
    if any(sign in text for sign in _OUT_OF_MEMORY):
        return ConfigurationError(
            "Spark ran out of memory", next_step="give the driver more with spark.driver.memory in the Spark connection"
        )
    return DefectError(
        f"the stage job failed unexpectedly: {type(error).__name__}: {_first_line(text)}",
        next_step="read the log of the stage task; if it is not the machine's fault, report it with that log",
    )


def _kind(name: str) -> type[ContextureError]:
    """The class of the intent that an error of ours with this name has."""
    return next((kind for kind in _INTENTS if name in _names(kind)), DefectError)


def _names(kind: type[ContextureError]) -> set[str]:
    return {kind.__name__}.union(*(_names(special) for special in kind.__subclasses__()))


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "no message")
