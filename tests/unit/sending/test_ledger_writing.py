"""Rows of a ledger that are written outside of a send, and late requests that fence their writer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contexture.kafka.errors import FencedError
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger import LedgerEntry, SenderNames
from contexture.sending.ledger_rebuild import write_rows
from fakes.kafka_cluster import FakeCluster, FakeLedger, failure

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:9092"})
NAMES = SenderNames("cars")
ROW = LedgerEntry("one", 1, 40, 40, 400, 3, None, datetime(2026, 11, 1, tzinfo=UTC), False)


def write(cluster, ledger, slept, row=ROW):
    write_rows(SETTINGS, NAMES, ledger, {0: row}, shards=1, open_producer=cluster.open_producer, sleep=slept.append)


def test_a_row_whose_writer_a_late_request_fences_is_written_again():
    cluster, slept = FakeCluster(), []
    ledger = FakeLedger(cluster, NAMES)
    cluster.script["commit_transaction"] = [failure("_FENCED", fatal=True)]
    write(cluster, ledger, slept)
    assert ledger.read(0) == ROW
    assert slept == [2.0]


def test_a_row_that_another_sender_wrote_meanwhile_is_not_written_over():
    cluster, slept = FakeCluster(), []
    ledger = FakeLedger(cluster, NAMES)
    later = replace(ROW, outbox="two", sequence=2)

    def written_meanwhile(producer):
        write(cluster, ledger, slept, later)
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [written_meanwhile]
    with pytest.raises(FencedError):
        write(cluster, ledger, slept)
    assert ledger.read(0) == later
