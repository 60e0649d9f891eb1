"""What `contexture doctor` looks at on the machine: Python, packages, Java, open files, ports, clock, byte code."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import socket
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from packaging.requirements import Requirement

from contexture.cli.examination import Found, Point

_OLDEST, _NEWEST = (3, 11), (3, 13)

_FEWEST_FILES: Final = 4096
"""A common default of 1,024 is soon used up by a broker that keeps files open for every partition."""

_CLOCK_UNKNOWN: Final = 5
"""What Linux answers (TIME_ERROR) where nothing keeps its clock right."""

# They replace files of pyspark's, or bring a version of it that doesn't fit.
_IN_THE_WAY: Final = ("airflow-provider-great-expectations", "pyspark-connect")


def machine_points() -> tuple[Point, ...]:
    """The points, in the order in which one thing needs another."""
    return (
        Point("Python", _python),
        Point("packages", _packages),
        Point("Java", _java),
        Point("Python of Spark", _spark_python),
        Point("open files", _open_files),
        Point("ports", _ports),
        Point("clock", _clock),
        Point("byte code", _byte_code),
    )


def _python() -> Found:
    detail = f"{platform.python_version()} ({sys.executable})"
    if _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return Found("good", detail)
    return Found("bad", detail, "install with Python 3.11, 3.12 or 3.13")


def _packages() -> Found:
    wrong = [*_unmet(metadata.requires("contexture") or ()), *_in_the_way()]
    if wrong:
        return Found(
            "bad", "; ".join(wrong), "install again from uv.lock (`make install`), into an environment of its own"
        )
    shown = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("apache-airflow", "pyspark", "great-expectations")
    )
    return Found("good", f"Contexture {metadata.version('contexture')}, {shown}")


def _unmet(requirements: list[str] | tuple[()]) -> Iterator[str]:
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name} is missing"
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, not {requirement.specifier}"


def _in_the_way() -> Iterator[str]:
    installed = {(distribution.name or "").lower() for distribution in metadata.distributions()}
    yield from (f"{name} is installed and does not fit" for name in _IN_THE_WAY if name in installed)


def _java() -> Found:
    from contexture.java.runtime import find_java

    found = find_java()
    return Found("good", f"{found.version}, from {found.origin} ({found.home})")


def _spark_python() -> Found:
    given = os.environ.get("PYSPARK_PYTHON")
    if given is None or os.path.realpath(given) == os.path.realpath(sys.executable):
        return Found("good", "this one")
    return Found(
        "doubtful",
        f"PYSPARK_PYTHON is {given}",
        "leave it out, unless the Python there has the same minor version and the same packages",
    )


def _open_files() -> Found:
    limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= _FEWEST_FILES:
        return Found("good", f"{limit} at once")
    return Found(
        "doubtful",
        f"{limit} at once (may be raised to {highest})",
        f"raise it to {_FEWEST_FILES} or more (`ulimit -n`, LimitNOFILE of the service) for Airflow and Kafka",
    )


def _ports() -> Found:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            with socket.create_connection(listener.getsockname(), timeout=2):
                return Found("good", "this machine can listen on 127.0.0.1, and reach itself")
    except OSError as error:
        return Found(
            "bad",
            f"this machine can not reach itself on 127.0.0.1: {error.strerror or type(error).__name__}",
            "let processes bind and reach 127.0.0.1: Spark's driver and its workers talk there",
        )


def _clock() -> Found:
    state = clock_state()
    if state is None:
        return Found("not looked at", "this system does not tell whether its clock is kept right")
    if state == _CLOCK_UNKNOWN:
        return Found(
            "doubtful",
            "nothing keeps this machine's clock right, as far as its system knows",
            "let it follow a time server (chrony, systemd-timesyncd): certificates, tokens and retention go by it",
        )
    return Found("good", "it follows a time server")


def clock_state() -> int | None:
    """What Linux knows of its clock, in a container of the host's; None where it can't be asked."""
    try:
        # Nothing is set: the first member, which says what is to be changed, is 0.
        state = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)))
    except (OSError, AttributeError):
        return None
    return state if state >= 0 else None


def _byte_code() -> Found:
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return Found(
            "doubtful",
            "PYTHONDONTWRITEBYTECODE is set",
            "unset it: every task is a process, and would compile Airflow and Spark again",
        )
    return Found("good", "is kept")
