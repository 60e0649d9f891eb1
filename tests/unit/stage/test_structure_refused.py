"""Reading structures again that a rule refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from builders.registry import urn
from builders.structure_reading import landed, landed_changes, read_context
from contexture.errors import ConfigurationError, RetriableError
from fakes.structure_registry import FakeRegistry
from spark_jobs.structures.read_context import ReadOutcome
from spark_jobs.structures.read_log import land_refused

A, A2, B, C = urn("A"), urn("A", "2.0"), urn("B"), urn("C")


@pytest.fixture
def registry() -> FakeRegistry:
    """Two transactions are known: A and B, and then B again."""
    held = FakeRegistry()
    held.submit({A: ("a",), B: ("b",)})
    held.submit({B: ("later",)})
    return held


def land(
    registry: FakeRegistry,
    home: Path,
    *urns: str,
    watermark: str | None = "2",
    select: Iterable[str] = (),
    sent: Iterable[str] = (),
) -> ReadOutcome:
    context = read_context(registry, home, select=select, sent=sent)
    outcome = land_refused(context, urns, watermark)
    context.close()
    return outcome


def test_it_is_landed_as_the_registry_has_it_at_the_transaction_of_the_target(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    assert land(registry, tmp_path, A, B) == ReadOutcome(None, 0, complete=False, transaction=2)

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", B)]
    assert b'id="later"' in landed(tmp_path)[1]["body"]


def test_what_was_changed_since_is_left_to_the_next_run(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("new",)})

    assert land(registry, tmp_path, A, B).transaction == 2

    assert landed_changes(tmp_path) == [(None, "upsert", B)]


def test_what_is_gone_or_no_longer_selected_is_left_out(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A2: ("a",)})
    latest = ["Codelist=X:A(~)", "Codelist=X:C(~)"]

    land(registry, tmp_path, A, B, C, watermark="3", select=latest)

    assert landed_changes(tmp_path) == []


def test_what_cannot_be_expressed_is_landed_again(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.inexpressible = {A}

    land(registry, tmp_path, A, B)

    assert sorted(landed_changes(tmp_path)) == [(None, "inexpressible", A), (None, "upsert", B)]


def test_a_registry_without_a_log_is_asked_as_it_is(tmp_path: Path) -> None:
    plain = FakeRegistry(has_log=False)
    plain.submit({A: ("a",)})

    assert land(plain, tmp_path, A, B, watermark=None).transaction is None

    assert landed_changes(tmp_path) == [(None, "upsert", A)]


class Busy(FakeRegistry):
    """A registry in which A is changed while it is read."""

    def read_one(self, urn, media_type, into, *, as_of=None):
        if urn == A and len(self.log) == 2:
            self.submit({A: ("new",)})
        return super().read_one(urn, media_type, into, as_of=as_of)


def test_what_is_changed_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    busy = Busy()
    busy.submit({A: ("a",)})
    busy.submit({B: ("b",)})

    with pytest.raises(RetriableError, match=r"X:A\(1.0\) was changed while it was read"):
        land(busy, tmp_path, A, B)


def test_a_log_that_lags_or_has_a_gap_is_waited_for(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({C: ()})
    registry.hidden = 1
    with pytest.raises(RetriableError, match="has made transaction 3, and its log does not contain it yet"):
        land(registry, tmp_path, A)
    registry.hidden, registry.forgotten = 0, 3
    with pytest.raises(ConfigurationError, match="no longer contains everything after transaction 2"):
        land(registry, tmp_path, A)
    with pytest.raises(ConfigurationError, match="the last published transaction of the registry is unknown"):
        land(registry, tmp_path, A, watermark=None)


def test_a_registry_that_denies_what_it_lists_answers_half(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.denied = {A}

    with pytest.raises(RetriableError, match="lists, and then does not hold"):
        land(registry, tmp_path, A)
