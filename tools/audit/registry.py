"""Asking the package registry by pip-audit, once a day for one lock file."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tools.audit.dependencies import Ask, UnansweredError
from tools.audit.pins import Pin

_ANSWER_SECONDS = 15
_ALL_SECONDS = 900
_OPTIONS = (
    *("--no-deps", "--disable-pip", "--vulnerability-service", "pypi", "--format", "json", "--aliases", "on"),
    *("--desc", "off", "--progress-spinner", "off", "--timeout", str(_ANSWER_SECONDS)),
)


def by_pip_audit(pins: Sequence[Pin]) -> str:
    """What pip-audit says about pins, as JSON.

    Raises:
        UnansweredError: it could not ask.
    """
    with tempfile.TemporaryDirectory(prefix="contexture-audit-") as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins), encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), *_OPTIONS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ALL_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise UnansweredError(f"pip-audit had no answer within {_ALL_SECONDS} s") from error
    # It ends with 1 when it found something, and when it could not ask.
    if done.stdout.strip():
        return done.stdout
    last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    raise UnansweredError(f"pip-audit could not ask the package registry: {last}")


def once_a_day(ask: Ask, folder: Path, today: date) -> Ask:
    """The same question has the same answer for a day; the files of other days go.

    Args:
        ask: the way to the registry.
        folder: gets the answers.
        today: the day.
    """

    def from_file(pins: Sequence[Pin]) -> str:
        question = hashlib.sha256("\n".join(map(str, pins)).encode()).hexdigest()[:16]
        file = folder / f"{today.isoformat()}-{question}.json"
        if not file.exists():
            answer = ask(pins)
            if "skip_reason" in answer:  # tomorrow's registry may know more, and so may the next minute's
                return answer
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("????-??-??-*.json"):
                if not old.name.startswith(today.isoformat()):
                    old.unlink()
            file.write_text(answer, encoding="utf-8")
        return file.read_text(encoding="utf-8")

    return from_file
