"""Splits one file in a process of its own: `python -m tools.bench.split_process FILE`.

Prints one JSON line: artefacts, bytes of the largest one, peak memory before and after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from contexture.sources.sdmx import split
from tools.bench.sender import peak_bytes


def main(file: Path) -> None:
    """Splits the file and prints the result; every message is made, as for sending it."""
    artefacts = largest = 0
    with file.open("rb") as stream:
        for artefact in split(stream):
            artefacts += 1
            largest = max(largest, artefact.size)
            len(artefact.message())
            del artefact
    answer = {"artefacts": artefacts, "largest_bytes": largest, "peak_bytes": peak_bytes()}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
