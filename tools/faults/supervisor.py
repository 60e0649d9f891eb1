"""Starts senders as processes of their own, and kills, stops or releases them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import psutil

from tools.faults.moments import Moment
from tools.faults.probe import said
from tools.faults.sender import SendOrder, send

_CONTEXT = multiprocessing.get_context("forkserver")
# A fork of a process that has everything imported takes milliseconds; no client was ever made in it.
_CONTEXT.set_forkserver_preload(["tools.faults.sender"])
_WAIT_SECONDS = 150.0


@dataclass(slots=True)
class Ending:
    """How a sender ended.

    Attributes:
        error: class of the error; None when everything was sent.
        message: the error's text.
        again: why something was done again.
        records_sent: committed by this sender.
        superseded: it found something later sent.
    """

    error: str | None
    message: str = ""
    again: tuple[str, ...] = ()
    records_sent: int = 0
    superseded: bool = False


@dataclass
class SenderProcess:
    """One sender; leaving its `with` block ends it whatever it does."""

    order: SendOrder
    last_moment: Moment | None = None
    _again: list[str] = field(default_factory=list)
    _ending: Ending | None = None

    def __post_init__(self) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=send, args=(self.order, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        """Whether its process lives."""
        return self._process.is_alive()

    def held(self) -> bool:
        """Waits until it holds at its aim; False when it ended before it came there."""
        return self._listen_until("holding")

    def go(self) -> None:
        """Lets it go on from where it holds; for one that is gone, its ending says what became of it."""
        with suppress(OSError):
            self._pipe.send(("go",))

    def kill(self) -> Moment | None:
        """Kills it; returns the moment that it reported last."""
        self._process.kill()
        self._process.join()
        self._listen_until("nothing")
        return self.last_moment

    def stop(self) -> None:
        """Stops it as a machine that is suspended does (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> bool:
        """Lets a stopped one run on (SIGCONT).

        Returns:
            Whether it was stopped until now. It may have ended before it could be stopped, and others may wake it: when
            the shell ends that started all this, the system wakes what is stopped.
        """
        was_stopped = self._is_stopped()
        self._signal(signal.SIGCONT)
        return was_stopped

    def ending(self) -> Ending:
        """Waits for its end.

        Raises:
            TimeoutError: it does not end.
        """
        self._listen_until("nothing")
        self._process.join(_WAIT_SECONDS)
        return self._ending or Ending("Killed")

    def __enter__(self) -> SenderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ValueError):
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _is_stopped(self) -> bool:
        try:
            return bool(psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return False

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process.pid is not None and self.is_alive:
                os.kill(self._process.pid, number)

    def _listen_until(self, word: str) -> bool:
        """Reads its messages up to a word (True) or to its end (False)."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while self._pipe.poll(max(0.0, deadline - time.monotonic())):
            try:
                words = self._pipe.recv()
            except (EOFError, OSError):
                return False
            self._take(words)
            if said(words, word):
                return True
        raise TimeoutError(f"a sender reported nothing for {_WAIT_SECONDS:.0f} s; its last moment: {self.last_moment}")

    def _take(self, words: tuple[Any, ...]) -> None:
        match words:
            case ("at", moment):
                self.last_moment = moment
            case ("again", detail):
                self._again.append(detail)
            case ("failed", error, message):
                self._ending = Ending(error, message, tuple(self._again))
            case ("done", result):
                self._ending = Ending(None, "", tuple(self._again), result["records_sent"], result["superseded"])
