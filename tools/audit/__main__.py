"""`python -m tools.audit`: vulnerabilities of the pinned packages, and secrets in the files of git."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tools.audit.dependencies import Ask, UnansweredError, acceptances_in, asked, judged
from tools.audit.pins import pins_in
from tools.audit.registry import by_pip_audit, once_a_day
from tools.audit.secret_scan import ACCEPTED, read_accepted, secrets_in, tracked_files, write_accepted

ROOT = Path(__file__).resolve().parents[2]
ACCEPTANCES = "tools/audit/accepted_vulnerabilities.toml"
_CANARY = "pip-audit"
_ACCEPT = "python -m tools.audit secrets --accept"


class Part(StrEnum):
    """What is checked."""

    ALL = "all"
    DEPENDENCIES = "dependencies"
    SECRETS = "secrets"


class Report:
    """Prints what was found, and stores the exit code."""

    def __init__(self, console: Console, *, strict: bool) -> None:
        self._console, self._strict = console, strict
        self.exit_code = 0

    def fault(self, line: str) -> None:
        """Prints something to fix."""
        self._console.print(line, style="bold red", markup=False)
        self.exit_code = 1

    def skipped(self, what: str, reason: str, next_step: str) -> None:
        """Prints what was not checked: a skip is never silent."""
        self._console.print(f"SKIPPED: {what}: {reason}. Next: {next_step}", style="bold yellow", markup=False)
        self.exit_code = 1 if self._strict else self.exit_code

    def note(self, line: str) -> None:
        """Prints something to know."""
        self._console.print(line, markup=False)


def dependencies(report: Report, root: Path, ask: Ask, today: date) -> None:
    """Reports the pins of `uv.lock` with vulnerabilities that are not accepted.

    Args:
        report: gets the lines.
        root: of the repository.
        ask: the way to the registry.
        today: decides which acceptances have run out.
    """
    pins = pins_in((root / "uv.lock").read_text(encoding="utf-8"))
    acceptances = acceptances_in(
        (root / "tools" / "audit" / "accepted_vulnerabilities.toml").read_text(encoding="utf-8")
    )
    elsewhere = "run make audit STRICT=1 where the package registry answers, before you release"
    try:
        answers = asked(pins, next(pin for pin in pins if pin.name == _CANARY), ask)
    except UnansweredError as error:
        report.skipped(f"the dependency audit of {len(pins)} pins", str(error), elsewhere)
        return
    verdict = judged(answers.findings, acceptances, today)
    for line in verdict.faults:
        report.fault(f"vulnerable: {line}")
    for line in (*verdict.accepted, *verdict.idle):
        report.note(line)
    if answers.unanswered:
        some = f"{len(answers.unanswered)} of {len(pins)} pins"
        report.skipped(f"the dependency audit of {some}", "; ".join(answers.unanswered), elsewhere)
    if verdict.faults:
        report.note(f"raise the pin (make lock), or accept it with a reason in {ACCEPTANCES}")
    report.note(f"dependencies: {len(pins)} pins, {len(verdict.faults)} vulnerable, {len(verdict.accepted)} accepted")


def secrets(report: Report, root: Path, *, accept: bool = False) -> None:
    """Reports what looks like a secret and is not accepted; or accepts it all.

    Args:
        report: gets the lines.
        root: of the repository.
        accept: writes what is found into the file of accepted ones.
    """
    files = tracked_files(root)
    if files is None:
        report.skipped("the secret scan", "this is no git repository", "run make audit in a clone")
        return
    found, file = secrets_in(root, files), root / ACCEPTED
    if accept:
        file.write_text(write_accepted(found), encoding="utf-8")
    accepted = set(read_accepted(file.read_text(encoding="utf-8")))
    new = [secret for secret in found if secret not in accepted]
    for secret in new:
        report.fault(f"looks like a secret: {secret}")
    if new:
        report.note(f"take it out, and renew it if it was ever pushed; what is made up is accepted by {_ACCEPT}")
    if idle := len(accepted - set(found)):
        report.note(f"{idle} accepted values are gone: {_ACCEPT}")
    report.note(f"secrets: {len(files)} files, {len(new)} to check, {len(accepted)} accepted")


def main(
    part: Annotated[Part, typer.Argument(help="What to check.")] = Part.ALL,
    strict: Annotated[bool, typer.Option(help="What could not be checked counts as a fault.")] = False,
    accept: Annotated[bool, typer.Option(help="Accepts all that looks like a secret now; read the diff.")] = False,
) -> None:
    """Known vulnerabilities of the pinned packages, and secrets in the files of git.

    Exit codes: 0 nothing to fix (skips are reported); 1 something.
    """
    report = Report(Console(highlight=False, soft_wrap=True), strict=strict)
    if part is not Part.SECRETS and not accept:
        today = datetime.now(UTC).date()
        dependencies(report, ROOT, once_a_day(by_pip_audit, ROOT / "var" / "audit", today), today)
    if part is not Part.DEPENDENCIES:
        secrets(report, ROOT, accept=accept)
    raise typer.Exit(report.exit_code)


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
