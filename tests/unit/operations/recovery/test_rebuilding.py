"""State made again from topics in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.outboxes import Record, outbox, publication
from builders.replica_topics import MemoryTopics
from builders.states import Held, state_table, write_files
from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity, content_hash, identity_hash, identity_key, parse_json
from contexture.operations.recovery import state as recovery
from contexture.operations.recovery.ownership import FOREIGN, SHARED
from contexture.operations.recovery.state import UNKNOWN_HASH, RebuiltState, rebuilding, write_rows
from contexture.publications import Publication
from contexture.sending import LedgerEntry
from contexture.storage.home import Home
from contexture.storage.state import StatePointer

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIXED = {"naming": "fixed", "topics": ["cars"]}


def cars(**changes: Any) -> Publication:
    return publication(**{"topics": FIXED, **changes})


def source(**changes: Any) -> dict[str, Any]:
    return publication().source.model_dump(exclude_defaults=True) | changes


def key(name: str, *, path: str = "/4wheels", kind: str = "car") -> bytes:
    return identity_key(ContextIdentity("vehicles", path, name, kind))


def value(name: str, speed: int = 1) -> bytes:
    return f'{{"id":"{name}","type":"car","speed":{{"type":"Number","value":{speed},"metadata":{{}}}}}}'.encode()


def car(name: str, speed: int = 1, topic: str = "cars") -> Record:
    return topic, key(name), value(name, speed)


def gone(name: str, topic: str = "cars") -> Record:
    return topic, key(name), None


class City:
    """A publication whose topics are there, and a home."""

    def __init__(self, folder: Path, owner: Publication | None = None) -> None:
        self.storage = Home(str(folder))
        self.owner = owner or cars()
        self.topics = MemoryTopics()
        self.topics.ledger = {0: LedgerEntry("outbox7", 7, 1, 1, 1, 0, None, NOON)}

    def rebuilt(self, *names: str, others: tuple[Publication, ...] = (), **options: Any) -> RebuiltState:
        with rebuilding(
            self.storage.publication(self.owner.name), self.owner, self.topics, names or ("cars",), others=others
        ) as (made, found):
            made.write(**options)
        return found

    @property
    def pointer(self) -> StatePointer:
        return self.storage.publication(self.owner.name).state.pointer()

    def rows(self) -> dict[str, dict[str, Any]]:
        """What state holds, by the id of the entity."""
        rows = self.storage.publication(self.owner.name).state.table(self.pointer).to_pylist()
        return {parse_json(row["identity"])[2]: row for row in rows}  # type: ignore[index]


@pytest.fixture
def city(tmp_path: Path) -> City:
    return City(tmp_path)


def test_state_holds_what_is_there_with_its_content(city: City) -> None:
    city.topics.send([car("a"), car("b"), car("a", 2), gone("b"), car("c")])

    found = city.rebuilt()

    assert (found.records, found.topics, found.found, found.with_content, found.held) == (5, 1, 2, 2, 0)
    assert found.samples == ('["vehicles","/4wheels","a","car"]', '["vehicles","/4wheels","c","car"]')
    rows = city.rows()
    assert sorted(rows) == ["a", "c"]
    assert rows["a"]["content_hash"] == content_hash(parse_json(value("a", 2)))
    assert rows["a"]["identity_hash"] == rows["a"]["entity_hash"] == identity_hash(key("a"))
    assert (rows["a"]["topics"], rows["a"]["key"], rows["a"]["missing_since"]) == (["cars"], key("a"), None)


def test_the_next_run_is_a_full_one_and_follows_on_all_that_kafka_has_seen(city: City) -> None:
    city.topics.send([car("a")])

    city.rebuilt()

    pointer = city.pointer
    assert (pointer.sequence, pointer.outbox, pointer.identities) == (7, "outbox7", 1)
    assert (pointer.generation, pointer.watermark) == (1, None)
    assert pointer.full_run_due == "state was rebuilt from the topics"


def test_or_one_that_reads_everything_and_sends_what_differs(city: City) -> None:
    city.topics.send([car("a")])

    city.rebuilt(only_differences=True)

    assert (city.pointer.full_run_due, city.pointer.watermark) == (None, None)


def test_what_state_holds_already_stays_as_it_is(city: City) -> None:
    state = city.storage.publication("vehicles").state
    held = state_table([Held(key("a").decode(), content="other"), Held(key("old").decode())])
    written = write_files(state, held)
    update = {"outbox": "mine", "sequence": 9, "generation": 4, "rows": (2,), "identities": 2, "watermark": "w"}
    state.commit(written.model_copy(update=update))
    city.topics.send([car("a"), car("b")])

    found = city.rebuilt()

    assert (found.held, found.found, found.sequence) == (2, 1, 9)
    pointer = city.pointer
    assert (pointer.outbox, pointer.sequence, pointer.generation, pointer.identities) == ("mine", 9, 5, 3)
    rows = city.storage.publication("vehicles").state.table(pointer).to_pylist()
    assert {row["identity"]: row["sequence"] for row in rows} == {key("a"): 1, key("old"): 1, key("b"): 9}


def test_what_the_publication_does_not_select_is_left_alone(city: City) -> None:
    others = [key("x", path="/2wheels"), key("y", kind="bus"), b"no identity", b'["vehicles", "/4wheels", "z", "car"]']
    city.topics.send([car("a"), *(("cars", each, value("z")) for each in others)])

    found = city.rebuilt()

    assert sorted(city.rows()) == ["a"]
    assert found.left_alone == {FOREIGN: 4}


def test_nor_what_it_would_have_sent_elsewhere(tmp_path: Path) -> None:
    city = City(tmp_path, publication())
    own = "vehiclesxffffx002f4wheelsxffffaxffffcar"
    city.topics.send([car("a", topic=own), car("b", topic=own), car("c", topic="cars")])

    found = city.rebuilt(own, "cars")

    assert sorted(city.rows()) == ["a"]
    assert found.left_alone == {FOREIGN: 2}


def test_what_several_publications_may_have_sent_is_left_alone(city: City) -> None:
    fast = cars(name="fast", source=source(query="speed>50", types=["car"], id_pattern="^a"))
    elsewhere = cars(name="elsewhere", topics={"naming": "fixed", "topics": ["others"]})
    city.topics.send([car("a"), car("b")])

    found = city.rebuilt(others=(fast, elsewhere, city.owner))

    assert sorted(city.rows()) == ["b"]
    assert found.left_alone == {SHARED: 1}


def test_what_one_of_several_topics_lacks_is_sent_again(tmp_path: Path) -> None:
    city = City(tmp_path, cars(topics={"naming": "fixed", "topics": ["cars", "all"]}))
    city.topics.send([car("a"), car("a", topic="all"), car("b", topic="all"), car("c"), car("c", 2, topic="all")])

    found = city.rebuilt("cars", "all", "nowhere")

    rows = city.rows()
    assert {name: row["topics"] for name, row in rows.items()} == {
        "a": ["cars", "all"],
        "b": ["all"],
        "c": ["cars", "all"],
    }
    assert [name for name, row in rows.items() if row["content_hash"] == UNKNOWN_HASH] == ["b", "c"]
    assert (found.found, found.with_content, found.missing) == (3, 1, ("nowhere",))


def test_a_key_in_several_partitions_is_there_while_one_of_them_has_it(city: City) -> None:
    city.topics.send([car("a"), car("b")])
    city.topics.send([gone("a"), car("b", 2)], partition=1)

    city.rebuilt()

    assert sorted(city.rows()) == ["a", "b"]
    assert city.rows()["b"]["content_hash"] == UNKNOWN_HASH


def test_values_that_do_not_hold_what_was_read_are_sent_again(tmp_path: Path) -> None:
    city = City(tmp_path, cars(message={"format": "ngsiv1"}))
    city.topics.send([car("a")])

    assert (city.rebuilt().with_content, city.rows()["a"]["content_hash"]) == (0, UNKNOWN_HASH)
    with pytest.raises(ConfigurationError, match="values in format ngsiv1 do not hold what was read"):
        city.rebuilt(only_differences=True)


def test_backfilled_values_of_a_history_are_not_what_is_there(tmp_path: Path) -> None:
    city = City(tmp_path, cars(topics={**FIXED, "keep": "history"}))
    city.topics.send([car("a"), car("b"), gone("b")])
    city.topics.send([car("b", 0), car("z", 0)], headers=(("contexture-backfill", b"2026-01-01"),))

    city.rebuilt()

    assert sorted(city.rows()) == ["a"]


def test_an_attribute_belongs_to_its_entity(tmp_path: Path) -> None:
    owner = cars(topics={**FIXED, "data_model": "dm-by-attribute"})
    city = City(tmp_path, owner)
    name = b'["vehicles","/4wheels","a","car","speed"]'
    city.topics.send([("cars", name, value("a")), car("whole")])

    city.rebuilt()

    (row,) = city.rows().values()
    assert (row["identity"], row["entity_hash"]) == (name, identity_hash(key("a")))
    assert row["content_hash"] == content_hash({"speed": {"type": "Number", "value": 1, "metadata": {}}})


@pytest.mark.parametrize("envelope", ["none", "cloudevents-structured"])
def test_where_keys_are_a_part_of_the_identity_values_show_the_rest(tmp_path: Path, envelope: str) -> None:
    city = City(tmp_path, cars(message={"key": "id", "envelope": envelope}))
    wrapped = {"none": b"%s", "cloudevents-structured": b'{"specversion":"1.0","id":"1","data":%s}'}[envelope]
    city.topics.send([("cars", b"a", wrapped % value("a")), ("cars", b"b", b"[]")])

    city.rebuilt()

    (row,) = city.rows().values()
    assert (row["identity"], row["key"]) == (key("a"), b"a")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"message": {"key": "none"}, "topics": {**FIXED, "keep": "history"}, "source": {"detect_deletions": False}},
            r"no keys \(message.key: none\)",
        ),
        (
            {
                "message": {"format": "cygnus-lines", "key": "topic"},
                "topics": {**FIXED, "keep": "history"},
                "batches": {"batch_size": 10},
            },
            "the lines of several entities",
        ),
        ({"message": {"key": "plate"}, "topics": {**FIXED, "keep": "history"}}, "values of the attribute plate"),
        ({"message": {"key": "type"}, "topics": {**FIXED, "keep": "history"}}, "several entities may share a key"),
        ({"message": {"key": "id", "format": "ngsiv1"}}, "only whole entities in format ngsiv2"),
        (
            {"message": {"key": "topic"}, "topics": {}, "source": {"service_path": "/#"}},
            "there are several service paths",
        ),
    ],
)
def test_records_that_show_no_identity_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    city = City(tmp_path, cars(**{**changes, "source": source(**changes.get("source", {}))}))

    with pytest.raises(ConfigurationError, match=f"publication vehicles cannot be made .*{reason}") as refused:
        city.rebuilt()

    assert "contexture verify vehicles" in refused.value.next_step


def test_a_publication_of_what_contexture_did_is_refused(tmp_path: Path) -> None:
    owner = Publication.model_validate({"name": "did", "source": {"kind": "operations"}, "topics": {"topics": ["did"]}})
    with pytest.raises(ConfigurationError, match="nothing in them is ever deleted"):
        City(tmp_path, owner).rebuilt()


def test_while_an_outbox_waits_it_is_refused(city: City) -> None:
    outbox(city.storage, city.owner, 3, [[car("a")]])

    with pytest.raises(ConfigurationError, match="outbox3 of publication vehicles is prepared") as refused:
        city.rebuilt()
    assert "contexture outbox abandon outbox3" in refused.value.next_step


def test_without_a_ledger_the_number_is_unknown(city: City) -> None:
    city.topics.ledger = {}

    with pytest.raises(ConfigurationError, match="nothing was ever sent"):
        city.rebuilt()


def test_a_run_that_concludes_meanwhile_is_not_written_over(city: City) -> None:
    city.topics.send([car("a")])
    concluded = StatePointer(outbox="new", sequence=8)
    state = city.storage.publication("vehicles").state

    with rebuilding(city.storage.publication(city.owner.name), city.owner, city.topics, ["cars"]) as (made, _):
        state.commit(concluded.model_copy(update={"sequence": 9}))
        with pytest.raises(ConfigurationError, match="the state of vehicles has changed in the meantime"):
            made.write()

    assert city.pointer.sequence == 9


def test_nor_is_one_that_concludes_while_rows_are_written(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    city.topics.send([car("a")])
    concluded = StatePointer(outbox="new", sequence=8)

    def write(*args: Any) -> None:
        write_rows(*args)
        city.storage.publication("vehicles").state.commit(concluded)

    monkeypatch.setattr(recovery, "write_rows", write)
    with pytest.raises(ConfigurationError, match="the state of vehicles has changed in the meantime"):
        city.rebuilt()

    assert city.pointer == concluded


def test_of_two_at_once_one_is_reported_and_nothing_is_missing(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    city.topics.send([car("a")])

    def write(*args: Any) -> None:
        write_rows(*args)
        monkeypatch.setattr(recovery, "write_rows", write_rows)
        city.rebuilt()

    monkeypatch.setattr(recovery, "write_rows", write)
    with pytest.raises(ConfigurationError, match="or it was rebuilt"):
        city.rebuilt()

    assert sorted(city.rows()) == ["a"]
    assert city.storage.folders("vehicles/work") == []


def test_rebuilding_again_adds_what_has_come_since(city: City) -> None:
    city.topics.send([car("a"), car("b")])
    city.rebuilt()
    city.topics.send([car("c")])

    again = [city.rebuilt(), city.rebuilt()]

    assert [(found.held, found.found) for found in again] == [(2, 1), (3, 0)]
    assert sorted(city.rows()) == ["a", "b", "c"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 3)))))
def test_state_holds_what_a_reader_of_the_topic_has_after_any_history(steps: list[tuple[str, int | None]]) -> None:
    with TemporaryDirectory() as folder:
        city = City(Path(folder))
        city.topics.send([gone(name) if speed is None else car(name, speed) for name, speed in steps])
        last = dict(steps)

        city.rebuilt()

        written = {name: row["content_hash"] for name, row in city.rows().items()}
        live = {name: speed for name, speed in last.items() if speed is not None}
        assert written == {name: content_hash(parse_json(value(name, speed))) for name, speed in live.items()}
