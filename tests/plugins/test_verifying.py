"""The steps and the operator behind the DAG `verify_replica`."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.outboxes import publication
from contexture.errors import ConfigurationError
from contexture.storage.home import Storage
from contexture.storage.state import State, StatePointer
from contexture_airflow.steps.verify import to_verify

KNOWN = [publication(name=name) for name in ("bikes", "cars", "trams")]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    opened = Storage(str(tmp_path))
    State(opened, "cars").point(StatePointer(generation=1, outbox="outbox1"))
    return opened


def test_without_names_all_that_have_published_something_are_verified(storage: Storage) -> None:
    assert to_verify(storage, KNOWN, []) == ["cars"]


def test_named_ones_are_verified_once_each(storage: Storage) -> None:
    assert to_verify(storage, KNOWN, ["trams", "cars", "trams"]) == ["trams", "cars"]


def test_a_name_that_does_not_exist_is_told_with_those_that_do(storage: Storage) -> None:
    with pytest.raises(ConfigurationError, match="there is no publication 'ferries'") as failure:
        to_verify(storage, KNOWN, ["ferries"])

    assert failure.value.next_step == "choose among: bikes, cars, trams"
