"""What the headers of dead letters say to those who read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contexture.errors import RejectedError
from contexture.kafka.reader import TopicRecord
from contexture.sending.dead_letters import RefusedPlace, RefusedRecord, dead_letter, refused_records

TOO_LARGE = RejectedError("a record of 100 bytes", next_step="raise the limit", error="MSG_SIZE_TOO_LARGE", status=3)
PLACE = RefusedPlace("outbox1", 2, 17)
REFUSED = RefusedRecord(
    at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
    error="MSG_SIZE_TOO_LARGE",
    message="a record of 100 bytes",
    by="broker",
    topic="cars",
    outbox="outbox1",
    shard=2,
    position=17,
    key=b"car1",
    value_bytes=100,
    place=(0, 4),
)


def letter(key: bytes | None, value: bytes | None, *, bare: bool = False) -> TopicRecord:
    """A dead letter as a consumer reads it."""
    row = ("cars", value, key, -1, None, None, 0, [("trace", b"\xff")])
    topic, kept_value, kept_key, *_, headers = dead_letter("aside", row, TOO_LARGE, PLACE, bare=bare)  # type: ignore[arg-type]
    at = int(datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp() * 1000)
    return TopicRecord(str(topic), 0, 4, kept_key, kept_value, tuple(headers), at)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (letter(b"car1", b"x" * 100), REFUSED),
        (letter(b"car1", b"x" * 100, bare=True), REFUSED),
        (letter(b"car1", None), replace(REFUSED, value_bytes=None)),
        (letter(b"k" * 70_000, b"x" * 100, bare=True), replace(REFUSED, key=None)),
        (replace(letter(b"car1", b"x" * 100), timestamp_ms=None), replace(REFUSED, at=None)),
    ],
)
def test_a_dead_letter_shows_why_and_where(record: TopicRecord, expected: RefusedRecord) -> None:
    assert list(refused_records([record])) == [expected]


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("contexture_refused_outbox", b"outbox1"),),
        (
            ("contexture_refused_outbox", b"outbox1"),
            ("contexture_refused_shard", b"-1"),
            ("contexture_refused_position", b"many"),
        ),
        (
            ("contexture_refused_outbox", None),
            ("contexture_refused_shard", b"\xff"),
            ("contexture_refused_position", None),
        ),
    ],
)
def test_what_another_party_wrote_there_is_left_out(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert list(refused_records([TopicRecord("aside", 0, 0, b"k", b"v", headers, 0)])) == []
