"""What a home knows of what was sent, where the ledger is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from builders.layout import PublicationPaths
from builders.outboxes import publication, records
from builders.states import approved
from contexture.kafka import ClientSettings, TopicRecord
from contexture.sending import timed_by_sending
from contexture.sending.ledger_rebuild import SentAccordingToHome, known_sent, ledger_from_records
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.schemas import EVENT_TIME_HEADER as TIME

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")


def test_the_outbox_that_comes_after_the_concluded_one_is_under_way(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    conclude(
        storage.publication(VEHICLES.name),
        approved(storage, VEHICLES, 1, [], [records("a", "b")]),
        cluster=None,
        target=None,
    )
    approved(storage, VEHICLES, 2, [], [records("a")])

    known = known_sent(storage.publication("vehicles"))

    assert known.pending is not None
    assert known.pending.outbox == "outbox2"
    entry = known.concluded_entry(0)
    assert entry is not None
    assert (entry.outbox, entry.sequence, entry.position) == ("outbox1", 1, 2)


def test_an_outbox_that_state_knows_was_sent_whole_though_its_status_does_not_say_it(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    manifest = approved(storage, VEHICLES, 1, [], [records("a", "b")])
    paths = (FOLDER.status("outbox1"), FOLDER.pending_marker(1, "outbox1"))
    before = {path: storage.read(path) for path in paths}
    conclude(storage.publication(manifest.publication), manifest, cluster=None, target=None)
    # As a process leaves it that dies after the state.
    for path, content in before.items():
        storage.write(path, content)

    known = known_sent(storage.publication("vehicles"))

    assert known.pending is None
    entry = known.concluded_entry(0)
    assert entry is not None
    assert (entry.outbox, entry.sequence, entry.position) == ("outbox1", 1, 2)


SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})


class KnownTopics(SentAccordingToHome):
    """What a home knows, and topics in memory."""

    found: ClassVar[list[TopicRecord]]

    def records(self, settings: ClientSettings, outbox: str) -> Iterator[TopicRecord]:
        return iter(self.found)


def test_records_of_a_history_are_recognised_though_they_were_given_a_header_when_they_were_sent(
    tmp_path: Path,
) -> None:
    storage, owner = Home(str(tmp_path)), publication(topics={"keep": "history"})
    pending = approved(storage, owner, 1, [], [records("a", "b")])
    store = storage.publication("vehicles")
    rows = [row for batch in store.reader(pending, 0).batches(0) for row in timed_by_sending(batch).to_pylist()]
    assert all(row["header:contexture_event_time"] for row in rows)
    KnownTopics.found = [
        TopicRecord("cars", 0, number, row["key"], row["value"], ((TIME, row[f"header:{TIME}"]),), 5)
        for number, row in enumerate(rows)
    ]

    [shard] = ledger_from_records(SETTINGS, KnownTopics(store, None, None, pending), pending, assume_sent=False)

    assert (shard.why, shard.uncertain) == ("1 of 1 transactions of outbox outbox1 are in Kafka", 0)
    assert shard.entry is not None
    assert (shard.entry.outbox, shard.entry.position) == ("outbox1", 2)
