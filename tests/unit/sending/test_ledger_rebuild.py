"""What a home knows of what was sent, where the ledger is lost."""

from __future__ import annotations

from pathlib import Path

from builders.layout import PublicationPaths
from builders.outboxes import publication, records
from builders.states import approved
from contexture.sending.ledger_rebuild import known_sent
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home

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
