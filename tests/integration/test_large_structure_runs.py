"""A structure of 190 MB from a registry to Kafka by a whole run: pull, prepare and judge in Spark, then the sender."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
import pytest

from builders import structures
from builders.structure_runs import registry_publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import read_committed
from contexture.sources.sdmx.registry import RegistryConnection
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shares of memory are read from /proc"),
]

MEGABYTE = 1 << 20
SIZE = 190 * MEGABYTE
URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:CL_LARGE(1.0)"


def large(size: int) -> bytes:
    """A code list of so many bytes."""
    code = '<str:Code id="C{:07d}"><com:Name xml:lang="en">{}</com:Name></str:Code>'
    each = len(code.format(0, "n" * 100))
    codes = "".join(code.format(number, "n" * 100) for number in range(size // each))
    whole = f'<str:Codelist id="CL_LARGE" agencyID="X" version="1.0">{codes}</str:Codelist>'
    return structures.ml("2.1", ("Codelists", whole)).encode()


def code_list(message: bytes) -> bytes:
    """The code list in a message, as it is written there."""
    return message[message.index(b"<str:Codelist ") : message.rindex(b"</str:Codelist>")]


@contextmanager
def registry_of(file: Path) -> Iterator[str]:
    """A registry in a process of its own, whose memory is not ours."""
    command = [sys.executable, "-m", "contexture_sandbox", "registry", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the registry did not start"
            yield url
        finally:
            process.terminate()


class Peaks:
    """The most memory that each process below this one had (proportional share, in megabytes), by what it is."""

    def __init__(self) -> None:
        self.megabytes: dict[str, int] = {}
        self._without = {child.pid for child in psutil.Process().children(recursive=True)}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        own = psutil.Process()
        while not self._ended.wait(0.2):
            for process in [own, *own.children(recursive=True)]:
                if process.pid not in self._without:
                    self._look(process, is_own=process == own)

    def _look(self, process: psutil.Process, *, is_own: bool) -> None:
        try:
            name = "driver" if is_own else process.name().partition(" ")[0]
            share = process.memory_full_info().pss // MEGABYTE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return
        self.megabytes[name] = max(share, self.megabytes.get(name, 0))


def test_one_structure_of_190_megabytes_goes_from_a_registry_to_kafka(
    tmp_path: Path,
    kafka: EmbeddedKafka,
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "large.xml").write_bytes(large(SIZE))
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    runs = WholeRuns(tmp_path / "home", kafka)
    owner = registry_publication(name=runs.name, topics={"topics": [runs.topic]}, resync={"on_startup": "full"})
    with registry_of(tmp_path / "large.xml") as url:
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", RegistryConnection(url).to_json())
        began = time.monotonic()
        with Peaks() as peaks:
            manifest = runs.ran(owner)
        seconds = time.monotonic() - began
    result = runs.storage.publication(runs.name).run(manifest.run).result()
    assert result is not None
    with capsys.disabled():
        timing = f"{manifest.shards[0].bytes / MEGABYTE:.0f} MB in {seconds:.0f} s: {dict(result.seconds)}"
        print(f"\n{timing}; megabytes of memory: {peaks.megabytes}")

    [record] = read_committed(runs.settings, [runs.topic])
    assert record.key == URN.encode()
    # The registry writes a header of its own.
    assert sha256(code_list(record.value or b"")).digest() == sha256(code_list(large(SIZE))).digest()
    assert manifest.quarantined_entities == 0
    assert max(peaks.megabytes.values()) < 6 * SIZE // MEGABYTE
