"""The steps and the operator behind the DAG `verify_replica`."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.outboxes import publication
from contexture.errors import ConfigurationError
from contexture.storage.home import Home
from contexture.storage.state import StatePointer
from contexture_airflow.steps.verify import select_publications

KNOWN = [publication(name=name) for name in ("bikes", "cars", "trams")]


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    opened = Home(str(tmp_path))
    opened.publication("cars").state.commit(StatePointer(generation=1, outbox="outbox1"))
    return opened


def test_without_names_all_that_have_published_something_are_verified(storage: Home) -> None:
    assert select_publications(storage, KNOWN, []) == ["cars"]


def test_named_ones_are_verified_once_each(storage: Home) -> None:
    assert select_publications(storage, KNOWN, ["trams", "cars", "trams"]) == ["trams", "cars"]


def test_a_name_that_does_not_exist_is_an_error_that_lists_those_that_do(storage: Home) -> None:
    with pytest.raises(ConfigurationError, match="there is no publication 'ferries'") as failure:
        select_publications(storage, KNOWN, ["ferries"])

    assert failure.value.next_step == "choose among: bikes, cars, trams"
