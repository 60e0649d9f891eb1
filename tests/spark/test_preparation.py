"""The prepare phase: landing in, outbox out, with a real Spark session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.landing import MORNING, car
from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.errors import ConfigurationError, RetriableError
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.manifests import Manifest
from spark_jobs.entities import prepare
from spark_jobs.entities.rows import rendered_folder
from spark_jobs.shared.context import StageContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PREFIX = "vehiclesxffffx002f4wheelsxffff"
Prepare = Callable[..., Preparer]


@pytest.fixture
def preparer(spark: SparkSession, tmp_path: Path) -> Prepare:
    """A new home with a publication of the cars, its sections replaced by what is given."""

    def make(home: str = "home", **changes: Any) -> Preparer:
        return Preparer(spark, tmp_path / home, publication(**changes))

    return make


def topics(manifest: Manifest, runs: Preparer) -> list[str]:
    return sorted(record["topic"] for record in runs.records(manifest))


def sent_speeds(manifest: Manifest, runs: Preparer) -> list[tuple[str, float | None]]:
    """Key's id and speed of each record, sorted; None for a tombstone."""
    pairs = []
    for record in runs.records(manifest):
        value = record["value"] and orjson.loads(record["value"])["speed"]["value"]
        pairs.append((orjson.loads(record["key"])[2], value))
    return sorted(pairs)


def identity(number: int, attribute: str | None = None) -> str:
    members = ["vehicles", "/4wheels", f"car{number}", "car", *([attribute] if attribute else [])]
    return orjson.dumps(members).decode()


def seconds(minutes: int) -> Any:
    return MORNING + timedelta(minutes=minutes)


def test_a_first_load_sends_every_entity_once(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded([car(1, 10), car(2, 20.5), car(3, 30)])

    records = sorted(runs.records(manifest), key=lambda record: record["key"])
    assert records[1] == {
        "position": records[1]["position"],
        "topic": f"{PREFIX}car2xffffcar",
        "key": b'["vehicles","/4wheels","car2","car"]',
        "value": b'{"id":"car2","type":"car","speed":{"type":"Number","value":20.5,"metadata":{}}}',
        "partition": None,
        "timestamp": MORNING,
        "transaction": 0,
        "batch": 1,
        "sub_batch": 0,
        "events": 1,
    }
    assert topics(manifest, runs) == [f"{PREFIX}car{number}xffffcar" for number in (1, 2, 3)]
    assert (manifest.read, manifest.accepted, manifest.upserts, manifest.deletes) == (3, 3, 3, 0)
    assert sum(shard.records for shard in manifest.shards) == 3
    assert manifest.topics == 3
    assert runs.held("withheld", "sequence") == {identity(number): (False, 1) for number in (1, 2, 3)}


def test_only_what_changed_is_sent_again_unless_all_is_asked_for(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])

    changes = runs.concluded([car(1, 10, modified=seconds(1)), car(2, 25), car(3, 30)])
    full = runs.concluded([car(1, 10), car(2, 25), car(3, 30)], mode="full")

    assert sent_speeds(changes, runs) == [("car2", 25), ("car3", 30)]
    assert (changes.accepted, changes.unchanged, changes.upserts) == (3, 1, 2)
    assert sent_speeds(full, runs) == [("car1", 10), ("car2", 25), ("car3", 30)]


SENDS_UNCHANGED = {"kind": "ngsi", "connection": "c", "service": "vehicles", "suppress_unchanged": False}


def test_what_was_written_again_without_a_change_is_sent_where_that_is_wanted(preparer: Prepare) -> None:
    runs = preparer(source=SENDS_UNCHANGED)
    runs.concluded([car(1, 10), car(2, 20)])

    read_again = runs.concluded([car(1, 10), car(2, 20)])
    rewritten = runs.concluded([car(1, 10, modified=seconds(1)), car(2, 20)])
    seen_again = runs.concluded([car(1, 10, modified=seconds(1)), car(2, 20)])

    assert sent_speeds(read_again, runs) == []
    assert sent_speeds(rewritten, runs) == [("car1", 10)]
    assert sent_speeds(seen_again, runs) == []


def timed(value: object, minute: int) -> dict[str, object]:
    time = {"type": "DateTime", "value": f"2026-03-01T08:{minute:02}:00.000Z"}
    return {"type": "Text", "value": value, "metadata": {"dateModified": time}}


def test_an_attribute_changes_when_it_says_so_itself(preparer: Prepare) -> None:
    runs = preparer(source=SENDS_UNCHANGED, topics={"data_model": "dm-by-attribute"})
    first = runs.concluded([{**car(1, 10), "speed": timed(10, 0), "colour": timed("red", 0)}])

    later = {**car(1, 10, modified=seconds(7)), "speed": timed(10, 7), "colour": timed("red", 0)}
    rewritten = runs.concluded([later])
    bluer = runs.concluded([{**later, "colour": timed("blue", 3)}])

    assert sorted(record["timestamp"] for record in runs.records(first)) == [seconds(0), seconds(0)]
    assert [(record["key"].decode(), record["value"], record["timestamp"]) for record in runs.records(rewritten)] == [
        (
            identity(1, "speed"),
            b'{"id":"car1","type":"car","speed":{"type":"Text","value":10,"metadata":{}}}',
            seconds(7),
        )
    ]
    assert [(record["key"].decode(), record["timestamp"]) for record in runs.records(bluer)] == [
        (identity(1, "colour"), seconds(3))
    ]


def test_an_entity_absent_in_two_runs_gets_a_tombstone_and_leaves_the_state(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])

    first = runs.concluded([car(1, 10)])
    second = runs.concluded([car(1, 10)])
    third = runs.concluded([car(1, 10)])

    assert (first.records, first.absent, first.deletes) == (0, 1, 0)
    assert sent_speeds(second, runs) == [("car2", None)]
    assert (topics(second, runs), second.deletes) == ([f"{PREFIX}car2xffffcar"], 1)
    assert (third.records, third.absent) == (0, 0)
    assert list(runs.held()) == [identity(1)]
    assert runs.state.pointer().identities == 1


def ending(number: int, minute: int) -> dict[str, object]:
    return {**car(number, 10), "dateExpires": {"type": "DateTime", "value": f"2026-03-01T08:{minute:02}:00.000Z"}}


def test_entities_that_said_when_they_end_need_no_second_absence_and_no_confirmation(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), *(ending(number, 1) for number in range(2, 20))])
    assert runs.held("expires_at")[identity(2)] == (seconds(1),)

    prolonged = runs.concluded([car(1, 10), *(ending(number, 1 + 29 * (number == 2)) for number in range(2, 20))])
    gone = runs.concluded([car(1, 10)])

    assert (prolonged.upserts, prolonged.unchanged) == (0, 19)
    assert sent_speeds(gone, runs) == [(f"car{number}", None) for number in sorted(range(3, 20), key=str)]
    assert (gone.deletes, gone.absent) == (17, 1)
    assert set(runs.held()) == {identity(1), identity(2)}


def test_an_entity_that_returns_must_be_absent_twice_again(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])
    runs.concluded([car(1, 10)])

    back = runs.concluded([car(1, 10)], present=[("/4wheels", "car1", "car"), ("/4wheels", "car2", "car")])
    marks = runs.held("missing_since")
    gone = runs.concluded([car(1, 10)])

    assert (back.records, back.present) == (0, 2)
    assert marks == {identity(1): (None,), identity(2): (None,)}
    assert (gone.deletes, gone.absent) == (0, 1)


def test_a_refused_entity_keeps_what_the_target_has(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])
    broken = {**car(1, 11), "speed": {"type": "Number", "value": "11"}}

    refused = [runs.concluded([broken, car(2, 20)]) for _ in range(3)]
    withheld = runs.held("withheld")
    released = runs.concluded([car(1, 10), car(2, 20)])

    assert [manifest.records for manifest in refused] == [0, 0, 0]
    assert refused[0].quarantined == {"number-string": 1}
    assert (refused[0].accepted, refused[0].quarantined_entities) == (1, 1)
    row = runs.quarantine(refused[0])[0]
    assert (row["id"], row["rule"], row["severity"], row["body"]) == (
        "car1",
        "number-string",
        "error",
        orjson.dumps(broken),
    )
    assert withheld == {identity(1): (True,), identity(2): (False,)}
    assert released.records == 0
    assert runs.held("withheld") == {identity(1): (False,), identity(2): (False,)}


def test_an_entity_that_was_absent_and_comes_back_broken_is_seen_and_withheld(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])
    runs.concluded([car(2, 20)])

    runs.concluded([{**car(1, 11), "speed": 11}, car(2, 20)])

    assert runs.held("missing_since", "withheld")[identity(1)] == (None, True)


ASIDE = {"on_failure": "dead-letter", "shards": 1}


def test_what_went_to_the_dead_letters_is_prepared_again_until_it_is_sent(preparer: Prepare) -> None:
    runs = preparer(publish=ASIDE)
    runs.concluded([car(1, 10), car(2, 20)])
    refused = runs.prepare([car(1, 10), car(2, 25), car(3, 30)])
    runs.conclude(refused, dead_letters=DeadLetterIndex(shards={0: (0, 1)}))
    withheld = runs.held("withheld", "sequence")

    again = runs.concluded([car(1, 10), car(2, 25), car(3, 30)])

    assert sent_speeds(refused, runs) == sent_speeds(again, runs) == [("car2", 25), ("car3", 30)]
    assert withheld == {identity(1): (False, 1), identity(2): (True, 1)}
    assert runs.held("withheld", "sequence") == {
        identity(1): (False, 1),
        identity(2): (False, 3),
        identity(3): (False, 3),
    }


def test_what_went_to_the_dead_letters_and_is_as_before_needs_nothing(preparer: Prepare) -> None:
    runs = preparer(publish=ASIDE)
    runs.concluded([car(1, 10)])
    runs.conclude(runs.prepare([car(1, 25)]), dead_letters=DeadLetterIndex(shards={0: (0,)}))

    back = runs.concluded([car(1, 10)])

    assert sent_speeds(back, runs) == []
    assert runs.held("withheld", "sequence") == {identity(1): (False, 1)}


def test_a_deletion_that_went_to_the_dead_letters_is_prepared_again(preparer: Prepare) -> None:
    runs = preparer(publish=ASIDE)
    runs.concluded([car(1, 10), car(2, 20)])
    runs.concluded([car(1, 10)])
    gone = runs.prepare([car(1, 10)])
    runs.conclude(gone, dead_letters=DeadLetterIndex(shards={0: (0,)}))

    again = runs.concluded([car(1, 10)])

    assert sent_speeds(gone, runs) == sent_speeds(again, runs) == [("car2", None)]
    assert list(runs.held()) == [identity(1)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("dm-by-service", ["vehicles", "vehicles"]),
        ("dm-by-service-path", ["vehiclesxffffx002f4wheels", "vehiclesxffffx002f4wheels"]),
        ("dm-by-entity", [f"{PREFIX}car1xffffcar", f"{PREFIX}car2xffffcar"]),
        ("dm-by-attribute", [f"{PREFIX}car1xffffcarxffffspeed", f"{PREFIX}car2xffffcarxffffspeed"]),
    ],
)
def test_each_data_model_names_its_topics(preparer: Prepare, model: str, expected: list[str]) -> None:
    runs = preparer(topics={"data_model": model})

    assert topics(runs.prepare([car(1, 10), car(2, 20)]), runs) == expected


def test_an_attribute_is_an_event_and_its_removal_a_tombstone(preparer: Prepare) -> None:
    runs = preparer(topics={"data_model": "dm-by-attribute"})
    colour = {"colour": {"type": "Text", "value": "red", "metadata": {}}}
    seen = [("/4wheels", "car1", "car"), ("/4wheels", "car2", "car")]
    runs.concluded([{**car(1, 10), **colour}, {**car(2, 20), **colour}], present=seen)

    changed = runs.concluded([{**car(1, 10), "colour": {"type": "Text", "value": "blue"}}], present=seen)
    removed = runs.concluded([car(1, 10)], present=seen)
    emptied = runs.concluded([{"id": "car2", "type": "car", "servicePath": car(2, 1)["servicePath"]}], present=seen)

    assert [(record["key"].decode(), record["value"]) for record in runs.records(changed)] == [
        (identity(1, "colour"), b'{"id":"car1","type":"car","colour":{"type":"Text","value":"blue"}}')
    ]
    assert [(record["key"].decode(), record["value"], record["topic"]) for record in runs.records(removed)] == [
        (identity(1, "colour"), None, f"{PREFIX}car1xffffcarxffffcolour")
    ]
    assert sorted((record["key"].decode(), record["value"]) for record in runs.records(emptied)) == [
        (identity(2, "colour"), None),
        (identity(2, "speed"), None),
    ]
    assert list(runs.held()) == [identity(1, "speed")]


def test_the_lines_of_a_sub_batch_are_one_record(preparer: Prepare) -> None:
    runs = preparer(
        topics={"data_model": "dm-by-service-path", "keep": "history"},
        message={"format": "cygnus-lines", "key": "topic"},
        batches={"batch_size": 3, "batch_timeout": 30},
    )
    paths = ["/a", "/b", "/a", "/a", "/b", "/a"]
    entities = [car(number, number, path=path) for number, path in enumerate(paths, 1)]

    # Three by size; two before 30 s are over; one more.
    manifest = runs.prepare(entities, received_seconds=[100, 99, 98, 97, 97, 60])

    records = sorted(runs.records(manifest), key=lambda record: (record["batch"], record["sub_batch"]))
    lines = [[orjson.loads(line) for line in record["value"].split(b"\n")] for record in records]
    assert [
        (record["batch"], record["sub_batch"], record["topic"], record["events"], [line["body"]["id"] for line in own])
        for record, own in zip(records, lines, strict=True)
    ] == [
        (0, 0, "vehiclesxffffx002fa", 2, ["car1", "car3"]),
        (0, 1, "vehiclesxffffx002fb", 1, ["car2"]),
        (1, 0, "vehiclesxffffx002fa", 1, ["car4"]),
        (1, 1, "vehiclesxffffx002fb", 1, ["car5"]),
        (2, 0, "vehiclesxffffx002fa", 1, ["car6"]),
    ]
    assert lines[0][0]["headers"] == [
        {"fiware-service": "vehicles"},
        {"fiware-servicePath": "/a"},
        {"timestamp": 1772352200000},
    ]
    assert manifest.upserts == 6
    assert manifest.records == 5


def test_fixed_topics_each_get_every_event_as_a_sub_batch_of_its_own(preparer: Prepare) -> None:
    runs = preparer(topics={"naming": "fixed", "topics": ["FOO", "BAR"]}, publish={"shards": 1})
    runs.concluded([car(1, 10), car(2, 20)])

    runs.concluded([car(1, 10)])
    gone = runs.concluded([car(1, 10)])
    full = runs.prepare([car(1, 10), car(2, 20)], mode="full")

    assert [(r["topic"], r["value"]) for r in runs.records(gone)] == [("FOO", None), ("BAR", None)]
    assert [(r["position"], r["topic"], r["batch"], r["sub_batch"]) for r in runs.records(full)] == [
        (0, "FOO", 0, 0),
        (1, "BAR", 0, 1),
        (2, "FOO", 1, 0),
        (3, "BAR", 1, 1),
    ]
    assert (full.upserts, full.records, full.topics) == (2, 4, 2)


def test_a_repeated_entity_is_sent_once_as_it_was_last(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded([car(1, 12, modified=seconds(2)), car(2, 20), car(1, 11, modified=seconds(1))])

    assert sent_speeds(manifest, runs) == [("car1", 12), ("car2", 20)]
    assert (manifest.accepted, manifest.repeated, manifest.upserts) == (2, 1, 2)


def test_an_entity_whose_id_is_no_text_is_quarantined_under_the_one_it_landed_with(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded([car(1, 10), {**car(5, 50), "id": 5}])

    assert [(row["id"], row["rule"]) for row in runs.quarantine(manifest)] == [("5", "id-type")]
    assert topics(manifest, runs) == [f"{PREFIX}car1xffffcar"]


def test_what_is_no_json_is_quarantined_and_stops_no_other_entity(preparer: Prepare) -> None:
    runs = preparer(quality={"max_quarantined_share": 1.0})
    broken = [
        b'{"id":"car2\\ud800","type":"car"}',
        b'{"speed":{"type":"Number","value":1E400},"id":"car3\\ud800","type":"car"}',
        b'{"id":"car4","type":"car","speed":{"type":"Number","value":NaN}}',
        b'{"id":"car5\xff","type":"car"}',
    ]

    manifest = runs.prepare([car(1, 10), *broken, car(6, 60)])

    assert sent_speeds(manifest, runs) == [("car1", 10), ("car6", 60)]
    assert manifest.quarantined == {"body": 4}
    assert [row["body"] for row in runs.quarantine(manifest)] == broken


def test_contradicting_entities_are_both_quarantined(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])

    manifest = runs.concluded([car(1, 10), car(2, 25), car(1, 11)])

    assert sent_speeds(manifest, runs) == [("car2", 25)]
    assert manifest.quarantined == {"duplicate": 2}
    assert (manifest.accepted, manifest.unchanged, manifest.quarantined_entities) == (1, 0, 2)
    assert [(row["id"], row["rule"]) for row in runs.quarantine(manifest)] == [("car1", "duplicate")] * 2
    assert runs.held("withheld")[identity(1)] == (True,)


def test_where_a_contradiction_is_no_error_the_last_content_is_sent_and_counted(preparer: Prepare) -> None:
    runs = preparer(quality={"rules": {"duplicate": "warning", "count-mismatch": "off"}})

    manifest = runs.concluded([car(1, 10), car(2, 25), car(1, 11)])

    assert sent_speeds(manifest, runs) == [("car1", 11), ("car2", 25)]
    assert (manifest.quarantined, manifest.warnings, manifest.repeated) == ({}, {"duplicate": 2}, 1)


def test_what_kafka_would_refuse_is_quarantined(preparer: Prepare) -> None:
    runs = preparer(topics={"config": {"max.message.bytes": "700"}})
    large = {**car(1, 10), "note": {"type": "Text", "value": "x" * 700, "metadata": {}}}
    long = {**car(2, 20), "id": "c" * 230}

    manifest = runs.prepare([large, long, car(3, 30)])

    assert sent_speeds(manifest, runs) == [("car3", 30)]
    assert manifest.quarantined == {"size": 1, "topic-length": 1}
    assert sorted((row["rule"], row["id"][:4]) for row in runs.quarantine(manifest)) == [
        ("size", "car1"),
        ("topic-length", "cccc"),
    ]


def test_more_attributes_than_can_be_numbered_are_quarantined_and_not_cut_off(preparer: Prepare) -> None:
    runs = preparer(topics={"data_model": "dm-by-attribute"}, quality={"rules": {"size": "off"}})
    attributes = {f"a{number}": {"type": "Number", "value": 1} for number in range(4097)}

    manifest = runs.prepare([{"id": "car1", "type": "car", **attributes}, car(2, 20)])

    assert manifest.quarantined == {"body": 1}
    assert manifest.records == 1


def test_a_hostile_id_is_named_keyed_and_sent_as_it_is(preparer: Prepare) -> None:
    runs = preparer()
    hostile = 'c"\n\x00<ü\U0001f600=xffff'

    manifest = runs.prepare([{**car(1, 10), "id": hostile}])

    (record,) = runs.records(manifest)
    assert orjson.loads(record["key"]) == ["vehicles", "/4wheels", hostile, "car"]
    assert orjson.loads(record["value"])["id"] == hostile
    assert record["topic"] == (f"{PREFIX}cx0022x000ax0000x003cx00fcxd83dxde00xffffxxffffxffffcar")
    assert manifest.warnings == {"id-syntax": 1}


def test_number_literals_are_kept_byte_for_byte(preparer: Prepare) -> None:
    literals = ["1.0", "1E5", "12345678901234567890123", "-0", "0.10"]
    members = ",".join(f'"a{n}": {{"type":"Number","value":{text}}}' for n, text in enumerate(literals))
    runs = preparer()

    manifest = runs.concluded([f'{{"id": "car1","type": "car",{members}}}'.encode()])
    again = runs.prepare([f'{{"type":"car",{members},"id":"car1"}}'.encode()])

    (record,) = runs.records(manifest)
    assert record["value"].decode() == f'{{"id":"car1","type":"car",{members}}}'.replace('": ', '":')
    assert (again.records, again.unchanged) == (0, 1)


def test_too_many_deletions_stop_the_run_until_they_are_confirmed(preparer: Prepare) -> None:
    runs = preparer(
        source={
            "kind": "ngsi",
            "connection": "c",
            "service": "vehicles",
            "shrink_limit": {"share": 0.0, "count": 1},
        }
    )
    runs.concluded([car(number, 10) for number in range(4)])
    runs.concluded([car(0, 10)])

    with pytest.raises(ConfigurationError, match="3 of 4 identities are missing") as stopped:
        runs.prepare([car(0, 10)])
    held_up = runs.storage.publication("vehicles").run("run3").shrink_report()
    confirmed = runs.again("run3", confirm_shrink=True)

    assert "confirm_shrink" in stopped.value.next_step
    assert held_up is not None
    assert (held_up.count, held_up.held, held_up.limit) == (3, 4, 1)
    assert sorted(orjson.loads(each)[2] for each in held_up.identities) == ["car1", "car2", "car3"]
    assert sent_speeds(confirmed, runs) == [("car1", None), ("car2", None), ("car3", None)]


def test_an_incomplete_or_empty_landing_deletes_nothing(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])

    quiet = [
        *(runs.concluded([car(1, 10)], complete=False) for _ in range(2)),
        *(runs.concluded([]) for _ in range(2)),
    ]

    assert [(manifest.records, manifest.absent) for manifest in quiet] == [(0, 0)] * 4
    assert runs.held("missing_since") == {identity(1): (None,), identity(2): (None,)}


def test_without_detect_deletions_nothing_is_ever_deleted(preparer: Prepare) -> None:
    source = {"kind": "ngsi", "connection": "c", "service": "vehicles", "detect_deletions": False}
    runs = preparer(source=source)
    runs.concluded([car(1, 10), car(2, 20)])

    quiet = [runs.concluded([car(1, 10)], mode="full") for _ in range(2)]

    assert [(manifest.records, manifest.absent, manifest.deletes) for manifest in quiet] == [(1, 0, 0)] * 2


def _files(runs: Preparer, manifest: Manifest) -> dict[str, str]:
    root = Path(runs.storage.path(runs.folder.outbox(manifest.outbox)))
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "status.json")
    return {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


ENTITIES = [car(number, number, modified=seconds(number % 3)) for number in range(40)]
BROKEN = {**car(50, 1), "speed": {"type": "Number", "value": "fast"}}


def test_the_same_input_gives_the_same_bytes_anywhere(preparer: Prepare) -> None:
    here, there = (preparer(home, publish={"shards": 3, "transaction_records": 7}) for home in ("here", "there"))

    manifests = [runs.prepare([*ENTITIES, BROKEN]) for runs in (here, there)]

    files = _files(here, manifests[0])
    assert files == _files(there, manifests[1])
    assert {name for name in files if name.startswith("shard=")} == {
        f"shard={shard}/part-00000.parquet" for shard in range(3)
    }
    assert manifests[0] == manifests[1]
    assert manifests[0].shards[0].sha256 == files["shard=0/part-00000.parquet"]


def test_a_preparation_killed_half_way_is_made_anew_with_the_same_bytes(preparer: Prepare) -> None:
    here, there = (preparer(home) for home in ("here", "there"))
    whole = here.prepare(ENTITIES)
    killed = there.prepare(ENTITIES)
    for path in (there.folder.manifest(killed.outbox), there.folder.status(killed.outbox)):
        there.storage.remove(path)
    work = there.folder.work("run1")
    there.storage.write(f"{work}/rendered/shard=0/00000000000000000000.parquet", b"half a file")
    there.storage.write(f"{there.folder.shard(killed.outbox, 0)}/part-00000.parquet", b"half a shard")
    there.storage.write(f"{there.folder.state_delta(killed.outbox)}/shard-00009.parquet", b"of more shards")
    there.storage.write(f"{there.folder.quarantine(killed.outbox)}/1.parquet", b"half a refusal")

    again = there.again("run1")

    assert again == whole
    assert _files(there, again) == _files(here, whole)
    assert there.quarantine(again) == []


def test_a_prepared_outbox_is_left_as_it_is_and_put_on_the_list_at_last(preparer: Prepare) -> None:
    runs = preparer()
    manifest = runs.prepare([car(1, 10)])
    shard = runs.folder.shard(manifest.outbox, 0)
    runs.storage.write(f"{shard}/part-00000.parquet", b"untouched")
    runs.storage.remove(runs.folder.status(manifest.outbox))

    assert runs.again("run1") == manifest

    assert runs.storage.read(f"{shard}/part-00000.parquet") == b"untouched"
    assert [item.outbox for item in runs.storage.publication("vehicles").outboxes.pending()] == [manifest.outbox]


def test_transactions_and_positions_are_dense_in_each_shard(preparer: Prepare) -> None:
    runs = preparer(publish={"shards": 2, "transaction_records": 7})

    manifest = runs.prepare(ENTITIES)

    for shard in manifest.shards:
        own = runs.records(manifest.model_copy(update={"shards": (shard,)}))
        assert [record["position"] for record in own] == list(range(shard.records))
        assert [record["transaction"] for record in own] == [number // 7 for number in range(shard.records)]
        assert shard.transactions == -(-shard.records // 7)
    assert manifest.records == 40


def test_records_for_very_many_topics_are_put_into_groups_of_few(preparer: Prepare) -> None:
    runs = preparer(publish={"shards": 1}, topics={"max_new_topics": 5000})

    manifest = runs.prepare([car(number, number % 90) for number in range(1_100, 0, -1)])

    records = runs.records(manifest)
    of_transaction = [{record["topic"] for record in records if record["transaction"] == each} for each in (0, 1)]
    assert [len(each) for each in of_transaction] == [1_000, 100]
    assert not of_transaction[0] & of_transaction[1]
    assert [record["position"] for record in records] == list(range(1_100))
    assert (manifest.topics, manifest.shards[0].transactions) == (1_100, 2)


def test_what_only_the_whole_snapshot_breaks_is_counted_or_rejects(preparer: Prepare) -> None:
    rules = {"dup-across-paths": "error", "count-mismatch": "off"}
    runs = preparer(quality={"rules": rules, "attribute_types": {"speed": "Number"}})
    drifted = {**car(2, 20), "speed": {"type": "Integer", "value": 20, "metadata": {}}}

    manifest = runs.prepare([car(1, 10), car(1, 10, path="/2wheels"), drifted, car(3, 30)])

    assert manifest.of_snapshot == {"dup-across-paths": 1}
    assert manifest.warnings["type-drift"] == 1
    assert manifest.upserts == 4


def test_an_event_that_a_storage_does_not_list_yet_is_not_left_unsent(
    preparer: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, assembled = preparer(publish={"shards": 1}), prepare.assemble

    def listed_late(spark: SparkSession, context: StageContext) -> Any:
        folder = rendered_folder(context.work, 0)
        folder.remove(folder.files(".parquet")[0])
        return assembled(spark, context)

    monkeypatch.setattr(prepare, "assemble", listed_late)
    with pytest.raises(RetriableError, match="0 of 2 rendered events are visible"):
        runs.prepare([car(1, 10), car(2, 20)])
    monkeypatch.setattr(prepare, "assemble", assembled)
    assert sent_speeds(runs.again("run1"), runs) == [("car1", 10), ("car2", 20)]
