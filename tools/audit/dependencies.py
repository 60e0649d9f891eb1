"""Which pins have known vulnerabilities, and which of these are accepted, why and until when."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from tools.audit.pins import Pin, rounds

Ask = Callable[[Sequence[Pin]], str]
"""Asks the registry about pins; what pip-audit says, as JSON. Raises `UnansweredError`."""


class UnansweredError(Exception):
    """The registry could not be asked: the message says why. Nothing was learned."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A vulnerability of a pin.

    Attributes:
        pin: that has it.
        names: its number in the registry's database first, then those it has elsewhere.
        fixed_in: versions without it; empty where there is none yet.
    """

    pin: Pin
    names: tuple[str, ...]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "no version without it"
        return f"{self.pin}: {' = '.join(self.names)} ({remedy})"


@dataclass(frozen=True, slots=True)
class Answers:
    """What the registry said: vulnerabilities, and pins that it knows nothing about, with its reasons."""

    findings: tuple[Finding, ...]
    unanswered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A vulnerability that was assessed as harmless here, for a time."""

    package: str
    name: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to fix, what is accepted, and acceptances that match no pin any more; a line each."""

    faults: tuple[str, ...]
    accepted: tuple[str, ...]
    idle: tuple[str, ...]


def asked(pins: Sequence[Pin], canary: Pin, ask: Ask) -> Answers:
    """What the registry says about all pins.

    Args:
        pins: of the lock file.
        canary: is asked about first and alone: a registry that knows nothing about it answers about nothing.
        ask: the way to the registry.

    Raises:
        UnansweredError: the registry can't be asked, or has no such answers.
    """
    first = _read(ask([canary]), [canary])
    if first.unanswered:
        raise UnansweredError(f"the package registry has no answers about versions ({first.unanswered[0]})")
    read = [_read(ask(some), some) for some in rounds(pins)]
    findings = tuple(finding for answers in read for finding in answers.findings)
    return Answers(findings, tuple(reason for answers in read for reason in answers.unanswered))


def acceptances_in(text: str) -> list[Acceptance]:
    """What `accepted_vulnerabilities.toml` says.

    Raises:
        ValueError: an entry lacks something, or has no reason.
    """
    found = []
    for entry in tomllib.loads(text).get("accepted", []):
        if set(entry) != {"package", "id", "reason", "until"} or not str(entry["reason"]).strip():
            raise ValueError(f"an accepted vulnerability has package, id, reason and until (a date), not {entry}")
        if type(entry["until"]) is not date:
            raise ValueError(f"until of {entry['id']} is a date as 2027-01-31, without quotation marks")
        found.append(Acceptance(entry["package"], entry["id"], entry["reason"], entry["until"]))
    return found


def judged(findings: Iterable[Finding], acceptances: Sequence[Acceptance], today: date) -> Verdict:
    """Returns the findings to fix: those without acceptance, and those whose acceptance ran out."""
    faults, accepted, used = [], [], set[Acceptance]()
    for finding in findings:
        matching = [each for each in acceptances if each.package == finding.pin.name and each.name in finding.names]
        used.update(matching)
        if in_force := [each for each in matching if today <= each.until]:
            accepted.append(f"{finding}: accepted until {in_force[0].until} because {in_force[0].reason}")
        elif matching:
            faults.append(f"{finding}: was accepted until {matching[0].until}; assess it again")
        else:
            faults.append(str(finding))
    idle = [f"{each.package}: {each.name} is accepted, and no pin has it" for each in acceptances if each not in used]
    return Verdict(tuple(faults), tuple(accepted), tuple(idle))


def _read(answer: str, pins: Sequence[Pin]) -> Answers:
    """An answer of pip-audit to a question about pins.

    Raises:
        UnansweredError: it is none, or leaves pins out.
    """
    try:
        answers = {each["name"]: each for each in json.loads(answer)["dependencies"]}
    except (ValueError, KeyError, TypeError) as error:
        raise UnansweredError("pip-audit gave an answer of another form; is it the pinned version?") from error
    if missing := [str(pin) for pin in pins if pin.name not in answers]:
        raise UnansweredError(f"pip-audit says nothing about {', '.join(missing[:3])}")
    findings = [
        Finding(pin, (each["id"], *sorted(each.get("aliases", ()))), tuple(each["fix_versions"]))
        for pin in pins
        for each in answers[pin.name].get("vulns", ())
    ]
    skipped = [f"{pin}: {reason}" for pin in pins if (reason := answers[pin.name].get("skip_reason"))]
    return Answers(tuple(findings), tuple(skipped))
