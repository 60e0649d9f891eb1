"""`split`: structure messages to artefacts with hash and references, against pysdmx reading the same file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pysdmx.io import read_sdmx

from contexture.sources.sdmx import split as split_message
from tools.bench.measures import Measure, Target, alternate
from tools.bench.settings import Setting
from tools.bench.structure_files import (
    CODES_OF_A_SHORT_LIST,
    write_code_lists,
    write_data_structures,
    write_json_code_list,
)

RATE_TARGET = Target(5, at_least=True)
_MEGABYTE = 1_000_000
_MEBIBYTE = 1 << 20
_ALLOWANCE_BYTES = 200 * _MEGABYTE
_CODES_OF_A_STRUCTURE = 250
_LARGEST_SHARE = 0.6
_BYTES_OF_A_CODE = 271
_VALIDATED_SHARE = 25
"""Validation in Python takes so long that a small message has to do."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of message.

    Attributes:
        what: is in it.
        write: writes it.
        validate: whether pysdmx is called as it is by default, validating first.
    """

    what: str
    write: Callable[[Path], None]
    validate: bool = False


def split(setting: Setting) -> list[Measure]:
    """Rates by kind of message, and the memory of one large file."""
    return [*(_rate(setting, case) for case in cases(setting.sizes.split_codes)), _memory(setting)]


def cases(codes: int) -> Iterator[Case]:
    """The messages that are split, each with about so many codes."""
    lists, structures, few = codes // CODES_OF_A_SHORT_LIST, codes // _CODES_OF_A_STRUCTURE, codes // _VALIDATED_SHARE
    short_lists = (CODES_OF_A_SHORT_LIST,) * lists
    yield Case(f"SDMX-ML 2.1, one list of {codes:,} codes", partial(write_code_lists, sizes=(codes,)))
    yield Case(
        f"SDMX-ML 2.1, {lists:,} lists of {CODES_OF_A_SHORT_LIST} codes", partial(write_code_lists, sizes=short_lists)
    )
    yield Case(f"SDMX-ML 3.0, {structures:,} data structures", partial(write_data_structures, number=structures))
    yield Case(f"SDMX-JSON 2.0, one list of {codes:,} codes", partial(write_json_code_list, codes=codes))
    yield Case(f"SDMX-JSON 2.0, one list of {few:,} codes", partial(write_json_code_list, codes=few), validate=True)


def _rate(setting: Setting, case: Case) -> Measure:
    file = setting.folder / "message"
    case.write(file)
    megabytes = file.stat().st_size / _MEGABYTE
    setting.progress(f"{case.what}: {megabytes:.1f} MB")

    def ours() -> float:
        began = time.perf_counter()
        with file.open("rb") as stream:
            for _ in split_message(stream):
                pass
        return megabytes / (time.perf_counter() - began)

    def peer() -> float:
        began = time.perf_counter()
        read_sdmx(file, validate=case.validate)
        return megabytes / (time.perf_counter() - began)

    figures, others = alternate(ours, peer, setting.sizes.pairs, setting.progress)
    against = f"pysdmx reading it, {'with validation as by default' if case.validate else 'without validation'}"
    return Measure("split", case.what, "MB/s", figures, others, against, RATE_TARGET)


def _memory(setting: Setting) -> Measure:
    file = setting.folder / "large"
    codes = setting.sizes.split_memory_bytes // _BYTES_OF_A_CODE
    largest = int(codes * _LARGEST_SHARE)
    write_code_lists(file, (largest, *((codes - largest) // 100,) * 100))
    command = [sys.executable, "-m", "tools.bench.split_process", str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    setting.progress(f"{answer['artefacts']} artefacts, the largest of {answer['largest_bytes'] / _MEGABYTE:.0f} MB")
    target = Target((3 * answer["largest_bytes"] + _ALLOWANCE_BYTES) / _MEBIBYTE, at_least=False)
    what = (
        f"peak memory of splitting {file.stat().st_size / _MEGABYTE:.0f} MB whose largest artefact has "
        f"{answer['largest_bytes'] / _MEBIBYTE:.0f} MiB; target: three times that and 200 MB"
    )
    return Measure("split", what, "MiB", (answer["peak_bytes"] / _MEBIBYTE,), target=target)
