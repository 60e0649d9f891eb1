"""What came of all targets: a table, the inputs of faults as files, and a document for scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from rich.table import Table

from tools.fuzz.supervisor import Result

COLUMNS = ("target", "reads", "cases", "a second", "ways", "slowest", "memory", "faults")


def table(results: Sequence[Result]) -> Table:
    """For rich."""
    found = Table(*COLUMNS, title="parsers under hostile input")
    for result in results:
        found.add_row(
            result.target.name,
            result.target.what,
            f"{result.cases:,}",
            f"{result.rate:,.0f}",
            str(result.ways),
            f"{result.slowest:.2f} s",
            f"{result.peak_bytes >> 20} MiB",
            str(len(result.faults)),
        )
    return found


def keep_inputs(results: Sequence[Result], folder: Path) -> Iterator[str]:
    """Writes the input of each fault to a file, and says in a line what it is."""
    for result in results:
        for fault, data in result.faults.items():
            folder.mkdir(parents=True, exist_ok=True)
            what = re.sub(r"\W+", "-", fault).strip("-")[:60]
            path = folder / f"{result.target.name}-{what}-{sha256(data).hexdigest()[:8]}"
            path.write_bytes(data)
            yield f"{result.target.name}: {fault} ({len(data)} bytes: {path})"


def write_json(file: Path, results: Sequence[Result], seed: int, seconds: float) -> None:
    """All targets."""
    document = {
        "seed": seed,
        "seconds": round(seconds, 1),
        "cases": sum(result.cases for result in results),
        "targets": [
            {
                "name": result.target.name,
                "cases": result.cases,
                "seconds": round(result.seconds, 2),
                "ways": result.ways,
                "slowest_seconds": round(result.slowest, 3),
                "peak_bytes": result.peak_bytes,
                "faults": {fault: data.hex() for fault, data in result.faults.items()},
            }
            for result in results
        ],
    }
    file.write_text(json.dumps(document, indent=1) + "\n")
