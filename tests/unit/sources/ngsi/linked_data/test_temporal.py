"""Reading a broker's history: a test broker of each kind, without a network."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from builders.linked_data import LinkedDataNetwork, device
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.errors import NotOfferedError
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi import history
from contexture.sources.ngsi.broker import Flavour
from contexture.sources.ngsi.history import HistoryInterval, NgsiLdHistoryClient
from contexture.sources.ngsi.query import EntityQuery
from contexture_sandbox.context_broker.linked_data import FLAVOURS

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = HistoryInterval(TEN, TEN + timedelta(hours=1))
FLAVOURS_WITH_HISTORY: list[Flavour] = ["orion-ld", "scorpio", "stellio"]


def network(flavour: Flavour, instances: int = 100) -> LinkedDataNetwork:
    """A broker that keeps a history; Orion-LD's is shown by Mintaka."""
    return LinkedDataNetwork(replace(FLAVOURS[flavour], history=True, history_instances=instances))


def reader(broker: LinkedDataNetwork | FalseAnswers, flavour: Flavour) -> NgsiLdHistoryClient:
    return NgsiLdHistoryClient(
        BrokerConnection("http://broker:1026"),
        "",
        context="https://example.org/context.jsonld",
        flavour=flavour,
        budget=RetryBudget(attempts=1, sleep=lambda _seconds: None),
        transport=broker.transport(),
    )


def level(number: int, value: int, **members: object) -> dict[str, object]:
    return {**device(number, **members), "level": {"type": "Property", "value": value}}


def time(seconds: float) -> str:
    return (TEN + timedelta(seconds=seconds)).isoformat()


def read(
    broker: LinkedDataNetwork | FalseAnswers, flavour: Flavour, interval: HistoryInterval = HOUR, *, whole: bool = True
) -> list[tuple[str, int, int]]:
    """Time, device and level of each change that is returned."""
    found = []
    for page in reader(broker, flavour).history(EntityQuery(), interval, whole=whole):
        for body, head in zip(page.entities, page.heads, strict=True):
            entity = json.loads(body)
            assert head.modified == entity["modifiedAt"]
            value = entity["level"]["value"] if "level" in entity else -1
            found.append((entity["modifiedAt"][11:23], int(entity["id"][-5:]), value))
    return found


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_the_changes_of_an_interval_are_returned_in_the_order_of_their_times(flavour: Flavour) -> None:
    broker = network(flavour)
    for seconds, number, value in [(-60, 1, 0), (0, 1, 1), (60, 2, 2), (120, 1, 3), (3600, 2, 4)]:
        broker.face.load([level(number, value)], at=time(seconds))
    assert read(broker, flavour) == [("10:00:00Z", 1, 1), ("10:01:00Z", 2, 2), ("10:02:00Z", 1, 3)]


def test_the_question_is_the_one_of_the_temporal_interface() -> None:
    broker = network("stellio")
    broker.face.load([level(1, 1)], at=time(0))
    read(broker, "stellio", whole=False)
    asked = broker.asked[2]
    assert asked.url.path == "/ngsi-ld/v1/temporal/entities"
    assert dict(asked.url.params) == {
        "type": "Device",
        "timerel": "between",
        "timeAt": "2026-01-01T09:59:59.999Z",
        "endTimeAt": "2026-01-01T11:00:00.000Z",
        "timeproperty": "modifiedAt",
        "options": "sysAttrs",
        "limit": "100",
        "offset": "0",
        "count": "true",
    }


@pytest.mark.slow
@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_an_answer_in_part_is_asked_for_again_in_stretches(flavour: Flavour) -> None:
    broker = network(flavour, instances=3)
    for seconds in range(20):
        broker.face.load([level(1, seconds)], at=time(seconds))
    broker.face.load([level(2, 99)], at=time(10))
    expected = sorted([(second, 1, second) for second in range(20)] + [(10, 2, 99)])
    assert [(int(at[6:8]), number, value) for at, number, value in read(broker, flavour)] == expected


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_all_entities_are_met_however_many_pages_they_fill(flavour: Flavour) -> None:
    broker = network(flavour)
    broker.face.load([level(number, 7) for number in range(250)], at=time(1))
    assert read(broker, flavour) == [("10:00:01Z", number, 7) for number in range(250)]


def test_the_whole_entity_has_what_was_known_before_the_interval() -> None:
    broker = network("scorpio")
    broker.face.load([level(1, 1)], at=time(-60))
    broker.face.load([level(1, 1, colour={"type": "Property", "value": "red"})], at=time(60))
    assert read(broker, "scorpio") == [("10:01:00Z", 1, 1)]
    assert read(broker, "scorpio", whole=False) == [("10:01:00Z", 1, -1)]


def test_what_was_deleted_since_is_returned_as_it_was() -> None:
    broker = network("stellio")
    broker.face.load([level(1, 1), level(2, 2)], at=time(0))
    broker.face.remove("urn:ngsi-ld:Device:00001")
    assert [number for _, number, _ in read(broker, "stellio")] == [1, 2]


def test_an_interval_without_a_change_returns_nothing() -> None:
    broker = network("stellio")
    broker.face.load([level(1, 1)], at=time(-60))
    assert read(broker, "stellio") == []


def test_a_long_stretch_is_cut_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "INSTANCES_AT_ONCE", 5)
    broker = network("stellio")
    for seconds in range(20):
        broker.face.load([level(1, seconds)], at=time(seconds))
    pages = list(reader(broker, "stellio").history(EntityQuery(), HOUR))
    sizes = [len(page.entities) for page in pages]
    assert max(sizes) <= 5
    assert sum(sizes) == 20


@pytest.mark.parametrize("flavour", ["orion-ld", "orion-ld-1.4"])
def test_a_broker_without_history_says_so(flavour: str) -> None:
    broker = LinkedDataNetwork(flavour)
    broker.face.load([level(1, 1)])
    with pytest.raises(NotOfferedError, match=r"serves no history.*Mintaka behind the same address"):
        read(broker, "orion-ld")


def test_more_at_one_moment_than_the_broker_shows_is_said_and_not_skipped() -> None:
    broker = network("stellio", instances=1)
    broker.face.load([level(1, 5)], at=time(1))
    broker.face.load([level(1, 6)], at=time(1.0004))
    with pytest.raises(ConfigurationError, match=r"more happened at 2026-01-01T10:00:01\+00:00"):
        list(reader(broker, "stellio").history(EntityQuery(), HOUR))


def test_history_that_is_taken_away_meanwhile_is_found_out() -> None:
    broker = network("stellio")
    broker.face.load([level(number, 7) for number in range(250)], at=time(1))
    tenant = broker.face._tenants[""]
    broker.broker.faults.after_page = lambda _page: tenant.history.pop("urn:ngsi-ld:Device:00000", None)
    with pytest.raises(RetriableError, match="history changed while it was read"):
        read(broker, "stellio")


class FalseAnswers:
    """A broker whose first answers to some requests are others; None lets the true one through."""

    def __init__(
        self, broker: LinkedDataNetwork, *answers: tuple[object, str] | None, of: str = "/temporal/entities"
    ) -> None:
        self.broker, self.of, self.answers = broker, of, list(answers)

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        false = self.answers.pop(0) if self.answers and self.of in str(request.url) else None
        if false is None:
            return self.broker._handle(request)
        body, count = false
        return httpx.Response(200, json=body, headers={"NGSILD-Results-Count": count, "Date": DATE})


DATE = "Thu, 01 Jan 2026 12:00:00 GMT"
NOTHING: tuple[object, str] = ([], "0")
NO_TYPES: tuple[object, str] = ({"id": "urn:ngsi-ld:EntityTypeList:1", "type": "EntityTypeList", "typeList": []}, "0")


def read_or_repeat(broker: FalseAnswers, flavour: Flavour) -> list[tuple[str, int, int]]:
    """What is read; a read that fails is repeated, as a task is."""
    for _ in range(3):
        with suppress(RetriableError):
            return read(broker, flavour)
    raise AssertionError("it fails three times")


def devices(changes: list[tuple[str, int, int]]) -> list[int]:
    return [number for _, number, _ in changes]


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_one_empty_answer_is_no_proof_that_nothing_happened(flavour: Flavour) -> None:
    """The broker's database was away for one request; the probe after it is answered well."""
    broker = network(flavour)
    broker.face.load([level(1, 1), level(2, 2)], at=time(60))
    assert devices(read_or_repeat(FalseAnswers(broker, NOTHING), flavour)) == [1, 2]


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_an_empty_answer_between_two_pages_loses_no_entity(flavour: Flavour) -> None:
    broker = network(flavour)
    broker.face.load([level(number, 7) for number in range(250)], at=time(1))
    assert devices(read_or_repeat(FalseAnswers(broker, None, NOTHING), flavour)) == list(range(250))


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_a_page_that_is_cut_short_and_counts_itself_loses_no_entity(flavour: Flavour) -> None:
    broker = network(flavour)
    broker.face.load([level(number, 7) for number in range(3)], at=time(1))
    read(broker, flavour)
    first = broker._handle(broker.asked[2]).json()[:1]
    assert devices(read_or_repeat(FalseAnswers(broker, (first, "1")), flavour)) == [0, 1, 2]


def test_what_was_known_before_is_not_lost_by_an_empty_answer() -> None:
    broker = network("scorpio")
    broker.face.load([level(1, 1)], at=time(-60))
    broker.face.load([level(1, 1, colour={"type": "Property", "value": "red"})], at=time(60))
    false = FalseAnswers(broker, NOTHING, of="timerel=before")
    assert read_or_repeat(false, "scorpio") == [("10:01:00Z", 1, 1)]
    assert false.answers == []


@pytest.mark.parametrize("flavour", FLAVOURS_WITH_HISTORY)
def test_one_empty_list_of_types_is_no_proof_that_there_are_none(flavour: Flavour) -> None:
    broker = network(flavour)
    broker.face.load([level(1, 1)], at=time(60))
    assert devices(read_or_repeat(FalseAnswers(broker, NO_TYPES, of="/types"), flavour)) == [1]
