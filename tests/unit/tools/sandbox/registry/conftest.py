"""A registry of its own for every test."""

from __future__ import annotations

import pytest

from builders.registry import Client


@pytest.fixture
def client() -> Client:
    """A client of an empty FMR."""
    return Client()


@pytest.fixture
def plain() -> Client:
    """A client of an empty SDMX-REST service that is no FMR."""
    return Client("plain")
