"""Which client a source gets, and what its broker is asked before."""

from __future__ import annotations

import pytest

from builders.linked_data import LinkedDataNetwork
from contexture.publications.source import NgsiSource
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client

CONNECTION = BrokerConnection("http://broker:1026")
CONTEXT = "https://example.org/context.jsonld"


def source(**settings: object) -> NgsiSource:
    return NgsiSource.model_validate({"kind": "ngsi", "connection": "broker", "service": "city", **settings})


def test_ngsiv2_is_spoken_unless_something_else_is_asked_for() -> None:
    network = LinkedDataNetwork("orion-ld")
    with open_broker(CONNECTION, "city", transport=network.transport()) as broker:
        assert isinstance(broker, NgsiV2Client)
    assert network.asked == []


@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio", "stellio"])
def test_a_linked_data_broker_is_asked_which_one_it_is(flavour: str) -> None:
    network = LinkedDataNetwork(flavour)
    with open_broker(CONNECTION, "city", Dialect("ngsi-ld"), transport=network.transport()) as broker:
        assert isinstance(broker, NgsiLdClient)
        assert broker.flavour == flavour


def test_a_flavour_that_is_given_is_believed() -> None:
    network = LinkedDataNetwork("orion-ld")
    with open_broker(CONNECTION, "city", Dialect("ngsi-ld", "stellio"), transport=network.transport()) as broker:
        assert broker.flavour == "stellio"
    assert network.asked == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Dialect("ngsiv2", None, "")),
        ({"flavour": "orion"}, Dialect("ngsiv2", "orion", "")),
        ({"api": "ngsi-ld", "context": CONTEXT}, Dialect("ngsi-ld", None, CONTEXT)),
        ({"api": "ngsi-ld", "flavour": "scorpio"}, Dialect("ngsi-ld", "scorpio", "")),
        ({"api": "ngsi-ld", "flavour": "generic"}, Dialect("ngsi-ld", "unknown", "")),
    ],
)
def test_a_publication_says_how_its_source_is_spoken_to(settings: dict[str, object], expected: Dialect) -> None:
    assert Dialect.of(source(**settings)) == expected
