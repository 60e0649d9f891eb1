"""Where a backfill comes from when its interval has no archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.errors import ConfigurationError
from contexture.publications import Publication, fingerprint
from contexture.sources.http.errors import NotOfferedError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import ReplayOptions, StageOrder
from contexture.storage.replay import NoLogError, NothingArchivedError, PartlyArchivedError
from spark_jobs.backfill import backfill
from spark_jobs.shared.verdict import stored_verdict

LINKED = {"kind": "ngsi", "connection": "broker", "service": "city", "api": "ngsi-ld"}


class _Asked(Exception):  # noqa: N818 - it says that something happened
    pass


def order(home: Path, source: dict[str, object] | None = None, **options: str) -> StageOrder:
    owner = owned(source) if source else publication()
    return StageOrder(
        publication=owner,
        fingerprint=fingerprint(owner),
        home=str(home),
        run="run1",
        mode="backfill",
        sequence=1,
        interval=(NOON, NOON + timedelta(minutes=5)),
        replay=ReplayOptions.model_validate(options),
    )


def owned(source: dict[str, object]) -> Publication:
    topics = {"topics": {"topics": ["all"]}} if source["kind"] == "sdmx" else {}
    return publication(source=source, **topics)


def archived(home: Path, source: dict[str, object], sequence: int = 1) -> None:
    storage, owner = Home(str(home)), owned(source)
    manifest = outbox(storage, owner, sequence, [records("car1")])
    manifest = manifest.model_copy(update={"received_from": NOON, "received_to": NOON})
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), manifest.to_json())
    for step in ("approved", "concluded"):
        storage.publication("vehicles").outboxes.set_status(manifest.outbox, step, reason="sent")


def raising(error: Exception) -> Callable[[], Manifest]:
    def history() -> Manifest:
        raise error

    return history


def test_an_ngsi_ld_broker_is_asked_for_its_history(tmp_path: Path) -> None:
    with pytest.raises(_Asked):
        backfill(order(tmp_path, LINKED), raising(_Asked()))


def test_an_ngsiv2_broker_has_none(tmp_path: Path) -> None:
    with pytest.raises(NothingArchivedError, match="nothing of vehicles is archived"):
        backfill(order(tmp_path), raising(_Asked()))


def test_without_archive_and_history_both_are_said(tmp_path: Path) -> None:
    none = NotOfferedError("the context broker at http://b serves no history", next_step="let it keep one")
    with pytest.raises(ConfigurationError) as caught:
        backfill(order(tmp_path, LINKED), raising(none))
    assert caught.value.message.startswith("nothing of vehicles is archived between")
    assert caught.value.message.endswith(", and the context broker at http://b serves no history")
    assert caught.value.next_step.endswith("; or let it keep one")


def test_a_whole_archive_wins_over_the_history(tmp_path: Path) -> None:
    archived(tmp_path, LINKED)

    assert backfill(order(tmp_path, LINKED), raising(_Asked())).replayed_from == "archive"


def test_half_an_archive_does_not(tmp_path: Path) -> None:
    archived(tmp_path, LINKED, sequence=3)

    with pytest.raises(_Asked):
        backfill(earlier(tmp_path), raising(_Asked()))


def test_half_an_archive_is_refused_where_there_is_no_history(tmp_path: Path) -> None:
    archived(tmp_path, LINKED, sequence=3)
    none = NotOfferedError("the context broker at http://b serves no history", next_step="let it keep one")

    with pytest.raises(PartlyArchivedError, match="vehicles lacks runs 1 to 2, received before 2026-03-01 12:00:00"):
        backfill(earlier(tmp_path), raising(none))
    assert backfill(earlier(tmp_path, incomplete="send"), raising(none)).replayed == 1


def earlier(home: Path, **options: str) -> StageOrder:
    """An interval that begins before the first archived run."""
    asked = order(home, LINKED, **options)
    return asked.model_copy(update={"interval": (NOON - timedelta(minutes=5), NOON + timedelta(minutes=5))})


def test_the_source_is_asked_in_spite_of_an_archive_when_it_is_named(tmp_path: Path) -> None:
    archived(tmp_path, LINKED)

    with pytest.raises(_Asked):
        backfill(order(tmp_path, LINKED, replay_from="source"), raising(_Asked()))


def test_the_archive_alone_is_taken_when_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(NothingArchivedError, match="nothing of vehicles is archived"):
        backfill(order(tmp_path, LINKED, replay_from="archive"), raising(_Asked()))


def test_a_source_without_a_past_can_not_be_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the context broker stores no history"):
        backfill(order(tmp_path, replay_from="source"), raising(_Asked()))


REGISTRY = {"kind": "sdmx", "connection": "registry"}


def test_a_registry_is_asked_for_its_log_where_the_archive_does_not_hold_the_interval(tmp_path: Path) -> None:
    with pytest.raises(_Asked):
        backfill(order(tmp_path, REGISTRY), raising(_Asked()))


def test_a_registry_that_is_known_to_keep_no_log_is_not(tmp_path: Path) -> None:
    with pytest.raises(NothingArchivedError):
        backfill(order(tmp_path, {**REGISTRY, "flavour": "generic"}), raising(_Asked()))


def test_a_registry_that_turns_out_to_keep_no_log_leaves_the_archive(tmp_path: Path) -> None:
    archived(tmp_path, REGISTRY, sequence=3)
    none = NoLogError("the registry at http://r keeps no log that could be sent again", next_step="look elsewhere")
    asked = order(tmp_path, REGISTRY, incomplete="send").model_copy(
        update={"interval": (NOON - timedelta(minutes=5), NOON + timedelta(minutes=5))}
    )
    made = backfill(asked, raising(none))
    assert (made.replayed_from, made.missing) == ("archive", ("runs 1 to 2, received before 2026-03-01 12:00:00",))


def test_what_is_sent_again_from_the_archive_leaves_a_report(tmp_path: Path) -> None:
    archived(tmp_path, {"kind": "ngsi", "connection": "broker", "service": "city"})
    asked = order(tmp_path, {"kind": "ngsi", "connection": "broker", "service": "city"}, incomplete="send")

    manifest = backfill(asked, raising(_Asked()))
    verdict = stored_verdict(asked, manifest)

    page = Home(str(tmp_path)).read(f"vehicles/report/{manifest.outbox}/index.html").decode()
    assert verdict.approved
    assert "Sent again from the archive" in page
    assert "<dd>2026-03-01 12:00:00 UTC to 2026-03-01 12:05:00 UTC</dd>" in page
    assert "<div><dt>Archived records</dt><dd>1</dd></div>" in page
    assert "data_docs" not in page
