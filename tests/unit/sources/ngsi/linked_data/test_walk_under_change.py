"""Walks through NGSI-LD brokers that are written to between all pages: what stays is met, so nothing seems deleted."""

from __future__ import annotations

from random import Random

import pytest

from builders.linked_data import LinkedDataNetwork, device
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.broker import Flavour
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.query import EntityQuery

pytestmark = pytest.mark.slow

ENTITIES = 1500
FLAVOURS: list[Flavour] = ["orion-ld", "scorpio", "stellio"]


class City:
    """A broker of 1,500 entities; 150 updates, 35 deletions and 35 insertions come with every 30 pages."""

    def __init__(self, flavour: Flavour, seed: int) -> None:
        self.network = LinkedDataNetwork(flavour)
        self.network.face.load(device(2 * number) for number in range(ENTITIES))
        self.present = {2 * number for number in range(ENTITIES)}
        self.deleted: set[int] = set()
        self._flavour = flavour
        self._random = Random(seed)
        self._unused = [2 * number + 1 for number in range(ENTITIES)]
        self._random.shuffle(self._unused)

    def change(self, page: int) -> None:
        """What happens between two pages; new ids lie anywhere among the old ones."""
        for number in self._random.sample(sorted(self.present), 5):
            self.network.face.load([device(number, changed=page)])
        for _ in range(2 if page % 6 == 0 else 1):
            self.delete(self._random.choice(sorted(self.present)))
            self.network.face.load([device(self._unused[-1])])
            self.present.add(self._unused.pop())

    def delete(self, number: int) -> None:
        self.network.face.remove(f"urn:ngsi-ld:Device:{number:05}")
        self.present.remove(number)
        self.deleted.add(number)

    def walk(self, page_size: int = 50) -> set[int]:
        """The numbers of the entities that a walk met."""
        connection, network = BrokerConnection("http://broker"), self.network.transport()
        with NgsiLdClient(connection, "", context="urn:c", flavour=self._flavour, transport=network) as broker:
            pages = broker.scan(EntityQuery(types=("Device",), page_size=page_size))
            return {int(str(seen.id)[-5:]) for page in pages for seen in page.heads}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nothing_that_stays_is_missed_so_nothing_that_is_there_seems_deleted(flavour: Flavour, seed: int) -> None:
    city = City(flavour, seed)
    held = city.walk()
    assert held == city.present
    city.network.broker.faults.after_page = city.change

    first, second = city.walk(), city.walk()

    assert len(city.deleted) > 50
    stayed = held - city.deleted
    assert stayed <= first
    assert stayed <= second
    # Absent in two walks: what would be a tombstone.
    assert held - first - second <= city.deleted


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("first", [3, 10, 25])
def test_a_purge_in_bulk_during_a_walk_hides_no_other_entity(flavour: Flavour, first: int) -> None:
    """Batches larger than pages go away between several pages that follow each other."""
    city = City(flavour, 0)
    purged = iter([sorted(city.present)[at : at + 130] for at in range(0, 1300, 130)])

    def purge(page: int) -> None:
        for number in next(purged, []) if page >= first else []:
            city.delete(number)

    city.network.broker.faults.after_page = purge

    met = city.walk()

    assert len(city.deleted) > 500
    assert city.present <= met
