"""A broker of its own for every test."""

from __future__ import annotations

import pytest

from builders.context_broker import Client


@pytest.fixture
def client() -> Client:
    """A client of an empty broker."""
    return Client()
