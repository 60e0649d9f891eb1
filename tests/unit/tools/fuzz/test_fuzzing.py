"""The fuzzer itself: what it calls a fault, and that it outlives whatever an input does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contexture.errors import DefectError, RejectedError
from tools.fuzz import supervisor, trial, worker
from tools.fuzz.feeding import Feeding, smallest
from tools.fuzz.mutation import MAXIMUM_BYTES
from tools.fuzz.report import keep_inputs
from tools.fuzz.supervisor import Result, fuzz_target
from tools.fuzz.target import Target, request, taken_apart
from tools.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]


def target(parse: Callable[[bytes], object], *inputs: bytes) -> Target:
    given = {str(number): data for number, data in enumerate(inputs or (b"abc",))}
    return Target("made up", "anything", parse, lambda: given, "json")


def faults(parse: Callable[[bytes], object], *inputs: bytes, cases: int | None = None) -> dict[str, bytes]:
    return fuzz_target(target(parse, *inputs), 1, 30.0, cases or len(inputs) or 1, lambda _: None).faults


def test_an_error_of_ours_is_no_fault_and_a_foreign_one_is() -> None:
    def parse(data: bytes) -> object:
        if data == b"refused":
            raise RejectedError("it is refused", next_step="correct it")
        raise KeyError(data)

    found = faults(parse, b"refused", b"foreign" * 10)

    assert [re.sub(r"\d+", "N", fault) for fault in found] == ["KeyError at test_fuzzing.py:N"]
    assert list(found.values()) == [b""]


def test_a_defect_of_ours_is_a_fault_where_a_stranger_wrote_the_document() -> None:
    def parse(data: bytes) -> object:
        raise DefectError("we are wrong", next_step="report this")

    assert next(iter(faults(parse))).startswith("DefectError at ")


def test_a_case_that_hangs_is_ended_and_the_next_ones_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "HANG_SECONDS", 0.3)
    monkeypatch.setattr(supervisor, "HANG_SECONDS", 0.3)

    def parse(data: bytes) -> object:
        while data == b"hang":
            pass
        if data == b"later":
            raise KeyError(data)
        return None

    found = faults(parse, b"first", b"hang", b"later")

    assert found["hang: more than 0 s of CPU time"] == b"hang"
    assert any(fault.startswith("KeyError") for fault in found)


@pytest.mark.slow
def test_a_case_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than a worker takes to come to its first case, on a machine that has much else to do.
    monkeypatch.setattr(supervisor, "STUCK_SECONDS", 5.0)

    def parse(data: bytes) -> object:
        if data == b"wait":
            time.sleep(3600)
        return None

    assert faults(parse, b"first", b"wait") == {"stuck: no end within 5 s": b"wait"}


def test_a_case_that_eats_memory_or_kills_the_process_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MEMORY_BYTES", 64 << 20)

    def parse(data: bytes) -> object:
        if data == b"eat":
            return len(bytearray(1 << 30))
        if data == b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    found = faults(parse, b"first", b"eat", b"die")

    assert any(fault.startswith("MemoryError") for fault in found)
    assert found["crash: SIGKILL"] == b"die"


def test_a_case_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SLOW_SECONDS", 0.3)

    def parse(data: bytes) -> object:
        started = time.process_time()
        while data == b"slow" and time.process_time() - started < 0.4:
            pass
        return None

    assert faults(parse, b"first", b"slow") == {"slow": b"slow"}


def test_the_smallest_input_with_the_same_fault_is_reported() -> None:
    assert smallest(b"a long text with {bad} in it", lambda data: b"{" in data and b"}" in data) == b"{}"


def test_the_same_seed_gives_the_same_inputs() -> None:
    def drawn(seed: str) -> list[bytes]:
        feeding = Feeding(TARGETS["ngsi-v2"], seed)
        return [feeding.next() for _ in range(60)]

    assert drawn("1") == drawn("1") != drawn("2")
    assert max(map(len, drawn("1"))) <= 2 * MAXIMUM_BYTES


def test_a_request_is_joined_and_taken_apart() -> None:
    data = request({"A-B": "c: d", "E": ""}, b"body\n\nmore", status=200)

    assert taken_apart(data) == ([b"200"], {"A-B": "c: d", "E": ""}, b"body\n\nmore")


def test_inputs_of_faults_are_kept_as_files(tmp_path: Path) -> None:
    result = Result(TARGETS["ledger"], faults={"KeyError at a.py:3": b"x"})

    assert list(keep_inputs([result], tmp_path)) == [
        f"ledger: KeyError at a.py:3 (1 bytes: {tmp_path}/ledger-KeyError-at-a-py-3-2d711642)"
    ]
    assert (tmp_path / "ledger-KeyError-at-a-py-3-2d711642").read_bytes() == b"x"


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_starts_from_is_parsed(name: str) -> None:
    chosen = TARGETS[name]
    ends = {type(trial.tried(chosen, data).way).__name__: data for data in chosen.inputs().values()}
    assert all(not trial.tried(chosen, data).fault for data in chosen.inputs().values())
    assert ends


@pytest.mark.slow
def test_a_short_slice_of_all_targets_finds_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "tools.fuzz",
            "--cases",
            "8",
            "--json",
            str(figures),
            "--folder",
            str(tmp_path),
        ],
        cwd=ROOT,
        # Only with the inputs of the code itself, so that it is the same everywhere.
        env={**os.environ, "PYTHONPATH": f"{ROOT}/include:{ROOT}/plugins", "CONTEXTURE_SAMPLES": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [each["cases"] for each in json.loads(figures.read_text())["targets"]] == [8] * len(TARGETS)
