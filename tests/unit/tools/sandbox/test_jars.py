"""Kafka's jars are exactly the pinned ones, or there is an error that says what to do."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from contexture.errors import ConfigurationError
from contexture_sandbox import jars

CONTENTS = {"alpha": b"first", "beta": b"second"}


@pytest.fixture
def pin_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pins of two small jars, which the cache holds already."""
    monkeypatch.setenv("CONTEXTURE_CACHE", str(tmp_path / "cache"))
    pins = [
        {"organisation": "org", "name": name, "revision": "1-2", "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in CONTENTS.items()
    ]
    file = tmp_path / "pins.json"
    file.write_text(json.dumps({"groups": {"broker": pins}}))
    folder = jars.folder_of("broker", jars.read_pins(file)["broker"])
    folder.mkdir(parents=True)
    for name, content in CONTENTS.items():
        (folder / f"{name}-1-2.jar").write_bytes(content)
    return file


def test_the_pinned_jars_are_accepted_again_and_again(pin_file: Path) -> None:
    folder = jars.fetch(pin_file=pin_file)
    assert jars.fetch(pin_file=pin_file) == folder
    assert sorted(file.name for file in folder.glob("*.jar")) == ["alpha-1-2.jar", "beta-1-2.jar"]


@pytest.mark.parametrize("verified_before", [False, True])
def test_another_content_of_the_same_size_is_refused(pin_file: Path, verified_before: bool) -> None:
    folder = jars.folder_of("broker", jars.read_pins(pin_file)["broker"])
    if verified_before:
        jars.fetch(pin_file=pin_file)
    (folder / "alpha-1-2.jar").write_bytes(b"fIrst")
    os.utime(folder / "alpha-1-2.jar", (1, 1))
    with pytest.raises(ConfigurationError, match=r"alpha-1-2\.jar has another SHA-256 than its pin") as caught:
        jars.fetch(pin_file=pin_file)
    assert caught.value.next_step.startswith(f"delete the folder {folder}")


def test_a_missing_jar_is_refused(pin_file: Path) -> None:
    (jars.fetch(pin_file=pin_file) / "beta-1-2.jar").unlink()
    with pytest.raises(ConfigurationError, match=r"beta-1-2\.jar is missing"):
        jars.fetch(pin_file=pin_file)


def test_a_jar_too_many_is_refused(pin_file: Path) -> None:
    (jars.fetch(pin_file=pin_file) / "gamma-3.jar").write_bytes(b"third")
    with pytest.raises(ConfigurationError, match=r"gamma-3\.jar is not pinned"):
        jars.fetch(pin_file=pin_file)


def test_a_damaged_marker_only_costs_another_look(pin_file: Path) -> None:
    folder = jars.fetch(pin_file=pin_file)
    (folder / "verified.json").write_text("{")
    assert jars.fetch(pin_file=pin_file) == folder


def test_other_pins_use_another_folder(pin_file: Path) -> None:
    pins = jars.read_pins(pin_file)["broker"]
    assert jars.folder_of("broker", pins) != jars.folder_of("broker", pins[:1])


def test_every_root_of_the_project_is_pinned_with_a_digest() -> None:
    pins = jars.read_pins()
    assert pins.keys() == jars.ROOTS.keys()
    for group, roots in jars.ROOTS.items():
        assert {jar.module for jar in pins[group]} >= set(roots)
        assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in pins[group])
        assert len({jar.file_name for jar in pins[group]}) == len(pins[group])


def test_the_project_pins_one_version_of_kafka() -> None:
    revisions = {
        jar.revision for group in jars.read_pins().values() for jar in group if jar.organisation == "org.apache.kafka"
    }
    assert revisions == {"4.3.1"}
