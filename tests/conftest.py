"""What holds for all tests."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

# Machines are shared: how long an example takes says nothing about the code.
SHARED_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A check of a change answers for the change: the same examples each time. `make test-laws` looks for new ones.
settings.register_profile("same examples", SHARED_MACHINE, derandomize=True)
settings.register_profile("new examples", SHARED_MACHINE, print_blob=True)
# `make test-quick` shows within a minute what is plainly wrong.
settings.register_profile("few examples", SHARED_MACHINE, derandomize=True, max_examples=10)


# By these a terminal, or a service that runs checks, asks commands for colours or a width.
LOOKS = ("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TTY_COMPATIBLE")

# How long after its time limit a test may still take to end.
HUNG_SECONDS = 60.0


class OneTryScheduling(LoadFileScheduling):
    """A file at a time for each process; a test that ended its process is not tried again."""

    def remove_node(self, node: Any) -> str | None:
        """A test whose process ended has failed; xdist would try it again and again."""
        for tests in self.assigned_work[node].values():
            for test, is_done in tests.items():
                if not is_done:
                    del tests[test]
                    super().remove_node(node)
                    return test
        return super().remove_node(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneTryScheduling | None:
    return OneTryScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Ends the process of a test that its time limit did not end, and shows where it waits; the others continue.

    The limit is a signal, and no signal reaches a thread that waits inside a library: the whole run would hang.
    """
    seconds = _time_limit(item) + HUNG_SECONDS
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[fault_handler_stderr_fd_key])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _time_limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run what takes many minutes (make test-long)")
    parser.addoption("--new-examples", action="store_true", help="draw new examples of every law (make test-laws)")
    parser.addoption("--few-examples", action="store_true", help="draw ten examples of every law (make test-quick)")


def pytest_configure(config: pytest.Config) -> None:
    asked = [name for name in ("new examples", "few examples") if config.getoption(f"--{name.replace(' ', '-')}")]
    settings.load_profile(asked[0] if asked else "same examples")


def pytest_sessionstart() -> None:
    """What commands print is the same on every machine. Before Typer is imported, which looks at these then."""
    for name in LOOKS:
        os.environ.pop(name, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shows long tests as left out, because they would be taken for passed otherwise."""
    if config.getoption("--long"):
        return
    left_out = pytest.mark.skip(reason="takes many minutes or gigabytes: make test-long runs it")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(left_out)
