"""Jars come from a Maven repository; here one on this machine, with one small jar."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox import jars
from contexture_sandbox.ports import LOOPBACK, free_port

pytestmark = pytest.mark.integration

CONTENT = b"PK\x03\x04 not really a jar"


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    """A static file server without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Maven repository with org.example:small:1.0, and an empty cache."""
    folder = tmp_path / "repository"
    jar = folder / "org" / "example" / "small" / "1.0" / "small-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT)
    handler = functools.partial(QuietFiles, directory=str(folder))
    with http.server.ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("CONTEXTURE_MAVEN_REPOSITORY", f"http://{LOOPBACK}:{server.server_address[1]}")
        monkeypatch.setenv("CONTEXTURE_CACHE", str(tmp_path / "cache"))
        yield folder
        server.shutdown()


def pin_file(folder: Path, content: bytes = CONTENT) -> Path:
    digest = hashlib.sha256(content).hexdigest()
    pin = {"organisation": "org.example", "name": "small", "revision": "1.0", "sha256": digest}
    file = folder / "pins.json"
    file.write_text(json.dumps({"groups": {"broker": [pin]}}))
    return file


def cached_jars(folder: Path) -> list[str]:
    return sorted(str(jar.relative_to(folder / "cache").parts[1]) for jar in (folder / "cache").rglob("*.jar"))


def test_pinned_jars_are_fetched_once_and_progress_is_shown(tmp_path: Path, repository: Path) -> None:
    seen: list[str] = []
    folder = jars.fetch(seen.append, pin_file=pin_file(tmp_path))
    assert (folder / "small-1.0.jar").read_bytes() == CONTENT
    assert seen == ["fetching small-1.0.jar"]
    (repository / "org" / "example" / "small" / "1.0" / "small-1.0.jar").unlink()
    assert jars.fetch(seen.append, pin_file=pin_file(tmp_path)) == folder
    assert seen == ["fetching small-1.0.jar"]


def test_a_wrong_digest_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"small-1\.0\.jar has another SHA-256 than its pin"):
        jars.fetch(pin_file=pin_file(tmp_path, b"something else"))
    assert cached_jars(tmp_path) == []


def test_an_absent_jar_is_named(tmp_path: Path, repository: Path) -> None:
    (repository / "org" / "example" / "small" / "1.0" / "small-1.0.jar").unlink()
    with pytest.raises(RetriableError, match="small"):
        jars.fetch(pin_file=pin_file(tmp_path))


def test_an_unreachable_repository_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTURE_MAVEN_REPOSITORY", f"http://{LOOPBACK}:{free_port()}/maven")
    with pytest.raises(RetriableError) as caught:
        jars.fetch(pin_file=pin_file(tmp_path))
    assert caught.value.next_step == (
        "connect to the network, or name a reachable Maven mirror in CONTEXTURE_MAVEN_REPOSITORY"
    )


FETCH = """
import pathlib, sys
from contexture_sandbox import jars
jars.fetch(print, pin_file=pathlib.Path(sys.argv[1]))
"""


def test_processes_that_fetch_at_once_share_one_folder(tmp_path: Path) -> None:
    pins = pin_file(tmp_path)
    command = [sys.executable, "-c", FETCH, str(pins)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(outputs) == ["", "", "fetching small-1.0.jar\n"]
    assert len(cached_jars(tmp_path)) == 1
