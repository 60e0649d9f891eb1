"""The ledger's record can be read back, also by later and earlier versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import DefectError
from contexture.sending import LedgerEntry, SenderNames
from contexture.storage.documents import UnknownFormatError

ENTRY = LedgerEntry("ab12", 7, 500, 100, 30_000, 4, None, datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
JSON = (
    b'{"outbox":"ab12","sequence":7,"position":500,"records":100,"bytes":30000,"transaction":4,'
    b'"source_transaction":null,"at":"2026-03-01T12:30:00+00:00","source_deletions":false,"format":1}'
)
EARLIER = JSON.replace(b',"source_deletions":false,"format":1', b"")


def test_an_entry_is_compact_json():
    assert ENTRY.to_json() == JSON


def test_members_of_later_versions_are_passed_over():
    assert LedgerEntry.from_json(JSON[:-1] + b',"later":1}') == ENTRY


def test_an_entry_of_an_earlier_version_is_of_no_deletions():
    assert LedgerEntry.from_json(EARLIER) == ENTRY
    assert LedgerEntry.from_json(EARLIER).source_deletions is False


def test_an_entry_that_a_later_contexture_wrote_otherwise_is_refused():
    with pytest.raises(UnknownFormatError, match="a row of the ledger is of format 2, and this one reads 1"):
        LedgerEntry.from_json(JSON.replace(b'"format":1', b'"format":2,"unheard_of":1'))


@pytest.mark.parametrize(
    ("transaction", "deletions", "place"), [(None, False, None), (42, False, (42, False)), (42, True, (42, True))]
)
def test_an_entry_knows_its_place_in_the_registrys_order(transaction, deletions, place):
    entry = replace(ENTRY, source_transaction=transaction, source_deletions=deletions)
    assert LedgerEntry.from_json(entry.to_json()).source_place == place


@given(
    st.builds(
        LedgerEntry,
        outbox=st.text(),
        sequence=st.integers(0, 2**62),
        position=st.integers(0, 2**62),
        records=st.integers(0, 2**31),
        bytes=st.integers(0, 2**62),
        transaction=st.integers(-1, 2**62),
        source_transaction=st.none() | st.integers(0, 2**62),
        at=st.datetimes(timezones=st.just(UTC)),
        source_deletions=st.booleans(),
        since=st.none() | st.datetimes(timezones=st.just(UTC)),
    )
)
def test_what_was_written_is_read_back(entry):
    assert LedgerEntry.from_json(entry.to_json()) == entry


def test_an_entry_says_when_the_sending_of_its_shard_began():
    entry = replace(ENTRY, since=datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert entry.to_json() == JSON[:-1] + b',"since":"2026-03-01T12:00:00+00:00"}'
    assert LedgerEntry.from_json(JSON).since is None


def test_a_beginning_without_its_zone_is_refused():
    with pytest.raises(DefectError, match="a time without its zone"):
        LedgerEntry.from_json(JSON[:-1] + b',"since":"2026-03-01T12:00:00"}')


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"outbox":"x"}', b"\xff"])
def test_what_is_no_entry_is_said_to_be_none(value):
    with pytest.raises(DefectError, match="not an entry"):
        LedgerEntry.from_json(value)


def test_names_of_senders():
    names = SenderNames("vehicles")
    assert names.transactional_id(1) == "tx.vehicles.1"
    assert names.ledger_topic == "contexture.ledger.vehicles"
    assert names.ledger_key(1) == b"1"


def test_backfills_have_names_of_their_own():
    names = SenderNames("vehicles", "acme", backfill="2026-03-01T00:00:00Z")
    assert names.transactional_id(0) == "acme.vehicles.backfill.2026-03-01T00:00:00Z.0"
    assert names.ledger_topic == "contexture.ledger.vehicles.backfill"
    assert names.ledger_key(0) == b"2026-03-01T00:00:00Z/0"


def test_an_empty_prefix_is_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        SenderNames("vehicles", "")
