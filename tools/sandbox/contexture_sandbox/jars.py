"""Kafka's jars: fetched once into the cache, each pinned by name, version and SHA-256.

The pins stand in `kafka-jars.json`. There are two groups: `broker` runs Kafka, `tools` adds Kafka's own measuring
programs and is fetched only for `make bench`. A maintainer who changes a version in `ROOTS` writes the pins anew with
`python -m contexture_sandbox.jars --pin` and reviews the difference.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.java.cache import cache_folder, exclusive
from contexture.java.runtime import find_java
from contexture_sandbox import ivy
from contexture_sandbox.maven import Module, Progress, download_jars, repository

KAFKA_VERSION = "4.3.1"
PIN_FILE = Path(__file__).with_name("kafka-jars.json")

# Kafka speaks slf4j 1.7 and brings no binding for it; without one the broker's log stays empty.
_LOGGING = Module("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
ROOTS: Mapping[str, tuple[Module, ...]] = {
    "broker": (Module("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), _LOGGING),
    "tools": (Module("org.apache.kafka", "kafka-tools", KAFKA_VERSION), _LOGGING),
}
_MARKER = "verified.json"


@dataclass(frozen=True, slots=True, order=True)
class PinnedJar:
    """One jar as it must be."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name on disk."""
        return self.module.jar

    @property
    def module(self) -> Module:
        """Where it comes from."""
        return Module(self.organisation, self.name, self.revision)


def fetch(progress: Progress | None = None, *, group: str = "broker", pin_file: Path = PIN_FILE) -> Path:
    """The folder with the jars of `group`, exactly those that are pinned; the first call fetches them (some 45 MB).

    Several processes may call at once. Later calls only look at names, sizes and times; a file that changed since is
    read again.

    Raises:
        ConfigurationError: a jar in the cache or from the repository is not the pinned one, is missing or is too many.
        RetriableError: the repository could not be reached.
    """
    pins = read_pins(pin_file)[group]
    folder = folder_of(group, pins)
    with exclusive("kafka-jars"):
        if not folder.exists():
            _fill(folder, pins, progress or (lambda _: None))
        _verify(folder, pins)
    return folder


def read_pins(pin_file: Path = PIN_FILE) -> dict[str, tuple[PinnedJar, ...]]:
    """The pinned jars by group."""
    groups = json.loads(pin_file.read_text())["groups"]
    return {group: tuple(PinnedJar(**jar) for jar in jars) for group, jars in groups.items()}


def write_pins(pin_file: Path = PIN_FILE, progress: Progress | None = None) -> None:
    """Resolves `ROOTS` with all they depend on, and writes the pins (for maintainers)."""
    groups = {group: [asdict(jar) for jar in _resolve(roots, progress)] for group, roots in ROOTS.items()}
    pin_file.write_text(json.dumps({"kafka": KAFKA_VERSION, "groups": groups}, indent=1) + "\n")


def _resolve(roots: Sequence[Module], progress: Progress | None) -> list[PinnedJar]:
    with tempfile.TemporaryDirectory(prefix="contexture-pin-") as work:
        folder = Path(work) / "jars"
        ivy.resolve_modules(find_java(), roots, folder, progress or (lambda _: None))
        return sorted(_pin(jar) for jar in folder.glob("*/*/*.jar"))


def _pin(jar: Path) -> PinnedJar:
    name = jar.parent.name
    return PinnedJar(jar.parent.parent.name, name, jar.stem.removeprefix(f"{name}-"), _digest(jar))


def folder_of(group: str, pins: Sequence[PinnedJar]) -> Path:
    """Where the cache keeps these jars. Other pins have another folder: an update never meets yesterday's jars."""
    content = json.dumps([asdict(jar) for jar in pins]).encode()
    return cache_folder() / "kafka-jars" / f"{group}-{hashlib.sha256(content).hexdigest()[:12]}"


def _fill(folder: Path, pins: Sequence[PinnedJar], progress: Progress) -> None:
    work = folder.parent / "fetching"
    # The lock is ours, so whatever is there was left by a process that was killed.
    shutil.rmtree(work, ignore_errors=True)
    draft = work / "draft"
    draft.mkdir(parents=True)
    try:
        download_jars([jar.module for jar in pins], draft, progress)
        _verify(draft, pins)
        draft.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _verify(folder: Path, pins: Sequence[PinnedJar]) -> None:
    wanted = {jar.file_name: jar.sha256 for jar in pins}
    found = {file.name: file for file in folder.glob("*.jar")}
    seen = _seen(folder)
    problems = [f"{name} is missing" for name in sorted(wanted.keys() - found)]
    problems += [f"{name} is not pinned" for name in sorted(found.keys() - wanted)]
    problems += [
        f"{name} has another SHA-256 than its pin"
        for name in sorted(wanted.keys() & found)
        if seen.get(name) != _stamp(found[name]) and _digest(found[name]) != wanted[name]
    ]
    if problems:
        raise _mismatch(folder, problems)
    stamps = {name: _stamp(file) for name, file in found.items()}
    if stamps != seen:
        (folder / _MARKER).write_text(json.dumps(stamps))


def _mismatch(folder: Path, problems: list[str]) -> ConfigurationError:
    more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
    return ConfigurationError(
        f"Kafka's jars are not the pinned ones: {', '.join(problems[:5])}{more}",
        next_step=f"delete the folder {folder} if it exists and try again; if that gives the same message, the "
        f"repository {repository()} delivers other files than the project was tested with: do not use them",
        folder=folder,
    )


def _seen(folder: Path) -> dict[str, list[int]]:
    try:
        stamps: dict[str, list[int]] = json.loads((folder / _MARKER).read_text())
    except (OSError, ValueError):
        return {}
    return stamps


def _stamp(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--pin"]:
        sys.exit("usage: python -m contexture_sandbox.jars --pin")
    write_pins(progress=_report)
