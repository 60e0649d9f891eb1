"""The columns that hold headers have one name, though the client library does not know the outbox."""

from __future__ import annotations

from contexture.kafka.produce import HEADER_COLUMN_PREFIX
from contexture.storage.schemas import HEADER_PREFIX


def test_outboxes_and_the_producer_name_header_columns_alike() -> None:
    assert (HEADER_COLUMN_PREFIX, HEADER_PREFIX) == ("header:", "header:")
