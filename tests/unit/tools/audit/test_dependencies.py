"""Vulnerabilities of pins are reported until they are accepted for a time; a silent registry is no all-clear."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from rich.console import Console

from tools.audit.__main__ import ROOT, Report, dependencies
from tools.audit.dependencies import Ask, Finding, UnansweredError, acceptances_in, asked, judged
from tools.audit.pins import Pin, pins_in, rounds
from tools.audit.registry import by_pip_audit, once_a_day

pytestmark = pytest.mark.slow

TODAY = date(2026, 11, 22)
CANARY = Pin("pip-audit", "2.10.1")
JINJA = Pin("jinja2", "3.1.5")
VULNERABLE = {JINJA: {"id": "PYSEC-2025-1", "aliases": ["CVE-2025-27516"], "fix_versions": ["3.1.6"]}}
LOCK = """
[[package]]
name = "contexture"
version = "0.1.0"
source = { editable = "." }

[[package]]
name = "jinja2"
version = "3.1.5"
source = { registry = "https://example.org/simple" }

[[package]]
name = "numpy"
version = "2.4.6"
source = { registry = "https://example.org/simple" }

[[package]]
name = "numpy"
version = "2.5.5"
source = { registry = "https://example.org/simple" }

[[package]]
name = "pip-audit"
version = "2.10.1"
source = { registry = "https://example.org/simple" }
"""
ACCEPTED = """
[[accepted]]
package = "jinja2"
id = "CVE-2025-27516"
reason = "templates are our own"
until = {until}
"""


class Registry:
    """Answers as pip-audit does, and remembers what it was asked."""

    def __init__(self, unknown: Sequence[str] = ()) -> None:
        self.questions: list[list[Pin]] = []
        self._unknown = unknown

    def __call__(self, pins: Sequence[Pin]) -> str:
        self.questions.append(list(pins))
        return json.dumps({"dependencies": [self._entry(pin) for pin in pins], "fixes": []})

    def _entry(self, pin: Pin) -> dict[str, object]:
        if pin.name in self._unknown:
            return {"name": pin.name, "skip_reason": "not found"}
        return {"name": pin.name, "version": pin.version, "vulns": [VULNERABLE[pin]] if pin in VULNERABLE else []}


def audited(folder: Path, ask: Ask, accepted: str = "", *, strict: bool = False) -> tuple[int, str]:
    (folder / "tools" / "audit").mkdir(parents=True)
    (folder / "uv.lock").write_text(LOCK)
    (folder / "tools" / "audit" / "accepted_vulnerabilities.toml").write_text(accepted)
    output = io.StringIO()
    report = Report(Console(file=output, soft_wrap=True), strict=strict)
    dependencies(report, folder, ask, TODAY)
    return report.exit_code, output.getvalue()


def test_all_versions_of_a_package_are_asked_about_but_not_in_one_question() -> None:
    pins = pins_in(LOCK)
    assert pins == [JINJA, Pin("numpy", "2.4.6"), Pin("numpy", "2.5.5"), CANARY]
    assert rounds(pins) == [[JINJA, Pin("numpy", "2.4.6"), CANARY], [Pin("numpy", "2.5.5")]]


def test_a_vulnerability_fails_the_check_and_says_what_fixes_it(tmp_path: Path) -> None:
    registry = Registry()

    code, output = audited(tmp_path, registry)

    assert code == 1
    assert "vulnerable: jinja2 3.1.5: PYSEC-2025-1 = CVE-2025-27516 (fixed in 3.1.6)" in output
    assert "dependencies: 4 pins, 1 vulnerable, 0 accepted" in output
    assert registry.questions == [[CANARY], [JINJA, Pin("numpy", "2.4.6"), CANARY], [Pin("numpy", "2.5.5")]]


def test_an_accepted_one_passes_with_its_reason_to_the_last_day(tmp_path: Path) -> None:
    code, output = audited(tmp_path, Registry(), ACCEPTED.format(until="2026-11-22"))

    assert code == 0
    assert "accepted until 2026-11-22 because templates are our own" in output


def test_an_acceptance_runs_out(tmp_path: Path) -> None:
    code, output = audited(tmp_path, Registry(), ACCEPTED.format(until="2026-11-21"))

    assert code == 1
    assert "was accepted until 2026-11-21; assess it again" in output


def test_an_acceptance_that_nothing_needs_is_reported() -> None:
    verdict = judged([], acceptances_in(ACCEPTED.format(until="2027-01-01")), TODAY)

    assert (verdict.faults, verdict.idle) == ((), ("jinja2: CVE-2025-27516 is accepted, and no pin has it",))


def test_an_acceptance_is_of_one_package() -> None:
    finding = Finding(Pin("mako", "1"), ("CVE-2025-27516",), ())

    verdict = judged([finding], acceptances_in(ACCEPTED.format(until="2027-01-01")), TODAY)

    assert verdict.faults == ("mako 1: CVE-2025-27516 (no version without it)",)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (ACCEPTED.format(until="2027-01-01").replace("templates are our own", " "), "package, id, reason and until"),
        (ACCEPTED.format(until="2027-01-01").replace("reason", "because"), "package, id, reason and until"),
        (ACCEPTED.format(until='"2027-01-01"'), "is a date"),
        (ACCEPTED.format(until="2027-01-01T00:00:00Z"), "is a date"),
    ],
)
def test_an_acceptance_has_a_reason_and_an_end(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        acceptances_in(written)


def test_a_registry_that_knows_no_versions_is_asked_once_and_the_skip_is_reported(tmp_path: Path) -> None:
    registry = Registry(unknown=["pip-audit", "jinja2", "numpy"])

    code, output = audited(tmp_path, registry)

    assert code == 0
    assert output.startswith(
        "SKIPPED: the dependency audit of 4 pins: the package registry has no answers about versions (pip-audit "
        "2.10.1: not found). Next: run make audit STRICT=1"
    )
    assert "vulnerable" not in output.replace("0 vulnerable", "")
    assert registry.questions == [[CANARY]]


def test_a_skip_is_a_fault_where_that_is_asked_for(tmp_path: Path) -> None:
    assert audited(tmp_path, Registry(unknown=["pip-audit"]), strict=True)[0] == 1


def test_pins_that_the_registry_does_not_know_are_named(tmp_path: Path) -> None:
    code, output = audited(tmp_path, Registry(unknown=["numpy"]), ACCEPTED.format(until="2027-01-01"))

    assert code == 0
    assert "SKIPPED: the dependency audit of 2 of 4 pins: numpy 2.4.6: not found; numpy 2.5.5: not found" in output


@pytest.mark.parametrize(
    "answer", ["", "no json", "[]", '{"dependencies":[{}]}', '{"dependencies":[{"name":"jinja2","vulns":[]}]}']
)
def test_what_is_no_answer_is_no_all_clear(answer: str) -> None:
    with pytest.raises(UnansweredError):
        asked([CANARY], CANARY, lambda pins: answer)


def test_what_pip_audit_writes_is_read() -> None:
    from packaging.version import Version
    from pip_audit._format import JsonFormat
    from pip_audit._service import ResolvedDependency, SkippedDependency, VulnerabilityResult

    found = VulnerabilityResult.create(["PYSEC-1", "CVE-1", "GHSA-1"], "text", [Version("3.1.6")], None)
    written = JsonFormat(output_desc=False, output_aliases=True).format(
        {
            ResolvedDependency("pip-audit", Version("2.10.1")): [],
            ResolvedDependency("jinja2", Version("3.1.5")): [found],
            SkippedDependency("numpy", "not found"): [],
        },
        [],
    )

    answers = asked([JINJA, Pin("numpy", "1.0"), CANARY], CANARY, lambda pins: written)

    assert [str(each) for each in answers.findings] == ["jinja2 3.1.5: PYSEC-1 = CVE-1 = GHSA-1 (fixed in 3.1.6)"]
    assert answers.unanswered == ("numpy 1.0: not found",)


def test_an_unreachable_registry_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    with pytest.raises(UnansweredError, match=r"could not ask the package registry: .*ProxyError"):
        by_pip_audit([CANARY])


def test_a_registry_is_asked_once_a_day_and_what_it_did_not_know_again(tmp_path: Path) -> None:
    registry = Registry(unknown=["numpy"])
    ask = once_a_day(registry, tmp_path, TODAY)
    assert ask([JINJA]) == ask([JINJA])
    assert ask([Pin("numpy", "1")]) == ask([Pin("numpy", "1")])
    assert registry.questions == [[JINJA], [Pin("numpy", "1")], [Pin("numpy", "1")]]

    once_a_day(registry, tmp_path, date(2026, 11, 23))([JINJA])

    assert len(registry.questions) == 4
    assert [file.name[:10] for file in tmp_path.iterdir()] == ["2026-11-23"]


def test_every_pin_of_ours_comes_from_the_registry_with_a_hash() -> None:
    lock = (ROOT / "uv.lock").read_text()
    assert len(pins_in(lock)) > 200
    assert CANARY.name in {pin.name for pin in pins_in(lock)}
    files = [line for line in lock.splitlines() if "{ url = " in line]
    assert files
    assert [line for line in files if 'hash = "sha256:' not in line] == []
    assert {word for line in lock.splitlines() if (word := line.partition("source = { ")[2].partition(" ")[0])} == {
        "registry",
        "editable",
    }


def test_what_is_accepted_here_can_be_read() -> None:
    acceptances_in((ROOT / "tools" / "audit" / "accepted_vulnerabilities.toml").read_text())
