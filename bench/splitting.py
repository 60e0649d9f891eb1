"""`split`: structure messages to artefacts with hash and references, against pysdmx reading the same file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pysdmx.io import read_sdmx

from bench.measures import Measure, Target, alternate
from bench.settings import Setting
from bench.structure_files import (
    CODES_OF_A_SHORT_LIST,
    write_code_lists,
    write_data_structures,
    write_json_code_list,
)
from contexture.sdmx import split as split_message

RATE_TARGET = Target(5, at_least=True)
_PEER = "pysdmx reading it, without validation"
_MEGABYTE = 1_000_000
_MEBIBYTE = 1 << 20
_ALLOWANCE_BYTES = 200 * _MEGABYTE
_CODES_OF_A_STRUCTURE = 250
_LARGEST_SHARE = 0.6
_BYTES_OF_A_CODE = 271


def split(setting: Setting) -> list[Measure]:
    """Rates by kind of message, and the memory of one large file."""
    codes = setting.sizes.split_codes
    lists, structures = codes // CODES_OF_A_SHORT_LIST, codes // _CODES_OF_A_STRUCTURE
    files: dict[str, Callable[[Path], None]] = {
        f"SDMX-ML 2.1, one list of {codes:,} codes": partial(write_code_lists, sizes=(codes,)),
        f"SDMX-ML 2.1, {lists:,} lists of {CODES_OF_A_SHORT_LIST} codes": partial(
            write_code_lists, sizes=(CODES_OF_A_SHORT_LIST,) * lists
        ),
        f"SDMX-ML 3.0, {structures:,} data structures": partial(write_data_structures, number=structures),
        f"SDMX-JSON 2.0, one list of {codes:,} codes": partial(write_json_code_list, codes=codes),
    }
    return [*(_rate(setting, what, write) for what, write in files.items()), _memory(setting)]


def _rate(setting: Setting, what: str, write: Callable[[Path], None]) -> Measure:
    file = setting.folder / "message"
    write(file)
    megabytes = file.stat().st_size / _MEGABYTE
    setting.tell(f"{what}: {megabytes:.1f} MB")

    def ours() -> float:
        began = time.perf_counter()
        with file.open("rb") as stream:
            for _ in split_message(stream):
                pass
        return megabytes / (time.perf_counter() - began)

    def peer() -> float:
        began = time.perf_counter()
        read_sdmx(file, validate=False)
        return megabytes / (time.perf_counter() - began)

    figures, others = alternate(ours, peer, setting.sizes.pairs, setting.tell)
    return Measure("split", what, "MB/s", figures, others, _PEER, RATE_TARGET)


def _memory(setting: Setting) -> Measure:
    file = setting.folder / "large"
    codes = setting.sizes.split_memory_bytes // _BYTES_OF_A_CODE
    largest = int(codes * _LARGEST_SHARE)
    write_code_lists(file, (largest, *((codes - largest) // 100,) * 100))
    command = [sys.executable, "-m", "bench.split_process", str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    setting.tell(f"{answer['artefacts']} artefacts, the largest of {answer['largest_bytes'] / _MEGABYTE:.0f} MB")
    target = Target((3 * answer["largest_bytes"] + _ALLOWANCE_BYTES) / _MEBIBYTE, at_least=False)
    what = (
        f"peak memory of splitting {file.stat().st_size / _MEGABYTE:.0f} MB whose largest artefact has "
        f"{answer['largest_bytes'] / _MEBIBYTE:.0f} MiB; target: three times that and 200 MB"
    )
    return Measure("split", what, "MiB", (answer["peak_bytes"] / _MEBIBYTE,), target=target)
