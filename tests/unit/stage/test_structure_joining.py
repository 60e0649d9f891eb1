"""An instance that starts beside others waits until these have published what happened before."""

from __future__ import annotations

import pytest

from builders.registry import urn
from contexture.errors import RetriableError
from contexture.sources.sdmx import Selector
from fakes.structure_registry import FakeRegistry
from spark_jobs.structures.read_log import check_no_pending_outbox

A, B, C = (urn(name) for name in "ABC")


@pytest.fixture
def registry() -> FakeRegistry:
    held = FakeRegistry()
    held.submit({A: ()})
    held.submit({B: ()})
    held.submit({C: ()}, delete=[A])
    return held


@pytest.mark.parametrize("sent_to", [1, 2])
def test_it_waits_while_something_is_not_published(registry: FakeRegistry, sent_to: int) -> None:
    with pytest.raises(RetriableError, match=f"up to transaction {sent_to} of 3"):
        check_no_pending_outbox(registry, [], sent_to)


def test_it_continues_when_all_is_published(registry: FakeRegistry) -> None:
    check_no_pending_outbox(registry, [], 3)


def test_what_is_not_selected_need_not_be_published(registry: FakeRegistry) -> None:
    check_no_pending_outbox(registry, [Selector.parse(f"*=*:{B.rpartition(':')[2].split('(')[0]}(*)")], 2)


def test_a_deletion_counts(registry: FakeRegistry) -> None:
    with pytest.raises(RetriableError):
        check_no_pending_outbox(registry, [Selector.parse(f"*=*:{A.rpartition(':')[2].split('(')[0]}(*)")], 2)


def test_what_the_log_has_forgotten_is_not_taken_for_nothing(registry: FakeRegistry) -> None:
    registry.forgotten = 3
    with pytest.raises(RetriableError):
        check_no_pending_outbox(registry, [], 1)
