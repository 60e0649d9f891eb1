"""Walks of a test broker that is written to between all pages, compared as the pull's snapshots are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import httpx
import pytest

from builders.comparing import Held, Row, snapshot, state
from contexture.records.changes import ChangeKind, compare
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.broker import EntityPage
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.paging import slice_boundaries, slice_count, sliced
from contexture.sources.ngsi.query import EntityQuery
from contexture_sandbox.context_broker import ConcurrentWriter, SeedEntity, api
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.loading import load

pytestmark = pytest.mark.slow

ENTITIES = 1500
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = EntityQuery("/city", page_size=50)


class City:
    """A broker of 1,500 entities without a network between it and its client."""

    def __init__(self, seed: int) -> None:
        self.broker = Broker()
        load(self.broker.store, _seeds())
        # About 150 updates, 35 deletes and 35 inserts in the 30 pages of a walk.
        often = ConcurrentWriter(
            self.broker.store, "s", updates=5, deletes=1, inserts=1, seed=seed, service_path="/city"
        )
        seldom = ConcurrentWriter(
            self.broker.store, "s", updates=0, deletes=1, inserts=1, seed=seed + 1000, service_path="/city"
        )
        self._churns = (often, seldom)
        self._random = Random(seed)

    def change_after_pages(self) -> None:
        self.broker.faults.after_page = self._change

    def _change(self, page: int) -> None:
        often, seldom = self._churns
        often(page)
        if page % 6 == 0:
            seldom(page)

    def changed(self) -> tuple[set[str], set[str]]:
        """What was deleted and what was inserted so far."""
        often, seldom = self._churns
        return often.deleted | seldom.deleted, often.inserted | seldom.inserted

    def present(self) -> set[str]:
        return {entity.id for entity in self.broker.store.tenant("s").entities.values()}

    def walk(self, readers: int) -> list[str]:
        """The ids that so many readers meet, one page after the other from any of them; repeats and all."""
        with self._client() as broker:
            slices = slice_count(broker.count(QUERY), QUERY.page_size, readers)
            cuts = [broker.time_at(QUERY, place) for place in slice_boundaries(broker.count(QUERY), slices)]
            walks = [broker.scan(query) for query in sliced(QUERY, cuts)]
            assert len(walks) == readers
            return [str(head.id) for page in self._mixed(walks) for head in page.heads]

    def _mixed(self, walks: list[Iterator[EntityPage]]) -> Iterator[EntityPage]:
        going = dict(enumerate(walks))
        while going:
            number = self._random.choice(sorted(going))
            page = next(going[number], None)
            if page is None:
                del going[number]
            else:
                yield page

    def _client(self) -> NgsiV2Client:
        network = httpx.MockTransport(self._answer)
        return NgsiV2Client(BrokerConnection("http://broker:1026"), "s", transport=network)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        segments = tuple(request.url.path.strip("/").split("/"))
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = Call(request.method, segments, dict(request.url.params), headers, request.content, "c")
        answer = api.answer(self.broker, call)
        return httpx.Response(answer.status, content=answer.body, headers=dict(answer.headers))


def _seeds() -> Iterator[SeedEntity]:
    for number in range(ENTITIES):
        moment = NEW_YEAR + timedelta(seconds=number // 3)  # so that some share a millisecond
        yield SeedEntity("s", "/city", {"id": f"e{number}", "type": "t"}, moment, moment)


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_nothing_that_stays_is_missed_and_nothing_that_is_there_gets_a_tombstone(seed: int, readers: int) -> None:
    city = City(seed)
    held = sorted(city.present())
    city.change_after_pages()

    first = city.walk(readers)
    deleted, inserted = city.changed()
    absent = _absent(first, [Held(one) for one in held])
    second = city.walk(readers)
    vanished = _vanished(second, [Held(one, missing=one in absent) for one in held])

    assert len(deleted) > 25
    assert len(inserted) > 25
    assert set(held) - deleted <= set(first)
    assert absent <= deleted
    assert absent
    assert vanished == absent
    assert vanished.isdisjoint(city.present())


def _absent(met: list[str], held: list[Held]) -> set[str]:
    found = compare(_snapshot(met), state(held), proves_absence=True).first_absent
    return {held[place].identity for place in found}


def _vanished(met: list[str], held: list[Held]) -> set[str]:
    found = compare(_snapshot(met), state(held), proves_absence=True).vanished
    return {held[place].identity for place in found}


def _snapshot(met: list[str]) -> object:
    # Two rows of one entity are two of its versions; the later row is the newer one.
    return snapshot(Row(one, ChangeKind.PRESENT, None, minute) for minute, one in enumerate(met))
