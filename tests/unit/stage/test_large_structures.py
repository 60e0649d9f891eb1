"""The memory that the preparation of large structures takes, in a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from builders import structures
from builders.structure_runs import InProcess, StructurePreparer, registry_publication, structure_landing, upserts

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc"),
]

MEGABYTE = 1 << 20


def large(name: str, size: int) -> bytes:
    """A code list of so many bytes."""
    code = '<str:Code id="C{:07d}"><com:Name xml:lang="en">{}</com:Name></str:Code>'
    each = len(code.format(0, "n" * 100))
    codes = "".join(code.format(number, "n" * 100) for number in range(size // each))
    whole = f'<str:Codelist id="{name}" agencyID="X" version="1.0">{codes}</str:Codelist>'
    return structures.ml("2.1", ("Codelists", whole)).encode()


def peak_of_this_process() -> int:
    """Megabytes; what `getrusage` gives begins with the size of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def prepared(home: str, results: multiprocessing.Queue[int]) -> None:
    """Prepares the first run; reports the peak of this process's memory in megabytes."""
    runs = StructurePreparer(InProcess(), Path(home), registry_publication())  # type: ignore[arg-type]
    runs.runs = 1
    manifest = runs.again("run1", mode="full")
    assert manifest.quarantined_entities == 0
    results.put(peak_of_this_process())


def peak(home: Path) -> int:
    """Megabytes that preparing the landed run takes at most."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=prepared, args=(str(home), results))
    process.start()
    process.join()
    assert process.exitcode == 0
    found: int = results.get()
    return found


def landed(home: Path, *messages: bytes) -> StructurePreparer:
    runs = StructurePreparer(InProcess(), home, registry_publication())  # type: ignore[arg-type]
    structure_landing(
        runs.storage, "structures", "run1", upserts(*messages), mode="full", complete=True, rows_in_group=1
    )
    return runs


def test_one_structure_of_190_megabytes(tmp_path: Path) -> None:
    landed(tmp_path, large("CL_A", 190 * MEGABYTE))

    assert peak(tmp_path) < 4 * 190 + 300


def test_memory_does_not_follow_their_number(tmp_path: Path) -> None:
    landed(tmp_path / "few", *(large(f"CL_{number:03d}", 2 * MEGABYTE) for number in range(15)))
    landed(tmp_path / "many", *(large(f"CL_{number:03d}", 2 * MEGABYTE) for number in range(60)))

    assert peak(tmp_path / "many") < peak(tmp_path / "few") + 60
