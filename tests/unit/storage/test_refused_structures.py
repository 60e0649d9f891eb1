"""Which quarantined structures are asked for again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.structure_runs import registry_publication, structure_order
from contexture.errors import ConfigurationError
from contexture.storage.home import Home
from contexture.storage.orders import Retry
from contexture.storage.quarantine_retry import refused_structures
from contexture.storage.schemas import QUARANTINE

FOLDER = PublicationPaths("structures")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def refuse(storage: Home, *refusals: tuple[int, str | None, str]) -> None:
    """Writes ordinal, URN and rule of what `outbox1` refused."""
    rows = [
        dict.fromkeys(QUARANTINE.names)
        | {"ordinal": ordinal, "operation": "upsert", "scope": "X", "id": urn, "received_at": NOON}
        | {"rule": rule, "severity": "error", "message": "wrong"}
        for ordinal, urn, rule in refusals
    ]
    with storage.write_atomically(f"{FOLDER.quarantine('outbox1')}/structures.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), path)


def chosen(storage: Home, *rules: str) -> tuple[str, ...]:
    order = structure_order(
        publication=registry_publication(), home=storage.root, run="again", mode="changes", sequence=2
    )
    return refused_structures(
        Home(order.home).publication(order.publication.name), order, Retry(outbox="outbox1", rules=rules)
    )


def noted(storage: Home) -> list[int]:
    """Ordinals of what the run tries."""
    table = pq.read_table(storage.path(FOLDER.chosen("again")), partitioning=None)
    return [int(ordinal) for ordinal in table.column("ordinal").to_pylist()]


def test_each_is_asked_for_once_and_noted_as_tried(storage: Home) -> None:
    refuse(storage, (9, "urn:b", "identity"), (9, "urn:b", "schema"), (12, "urn:b", "schema"), (3, "urn:a", "schema"))

    assert (chosen(storage), noted(storage)) == (("urn:a", "urn:b"), [3, 9, 12])


def test_rules_choose(storage: Home) -> None:
    refuse(storage, (9, "urn:b", "identity"), (3, "urn:a", "schema"))

    assert (chosen(storage, "identity"), noted(storage)) == (("urn:b",), [9])


def test_what_has_no_name_stays_where_it_is(storage: Home) -> None:
    refuse(storage, (9, None, "urn-missing"), (3, "urn:a", "schema"))

    assert (chosen(storage), noted(storage)) == (("urn:a",), [3])


def test_nothing_to_request_is_an_error(storage: Home) -> None:
    refuse(storage, (9, None, "urn-missing"))

    with pytest.raises(ConfigurationError, match="the identities of the structures"):
        chosen(storage)
    with pytest.raises(ConfigurationError, match="quarantined nothing by schema"):
        chosen(storage, "schema")
