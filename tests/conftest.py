"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared: how long an example takes says nothing about the code.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run what takes many minutes (make test-long)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests are shown as left out, so that nobody takes them for passed."""
    if config.getoption("--long"):
        return
    left_out = pytest.mark.skip(reason="takes many minutes or gigabytes: make test-long runs it")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(left_out)
