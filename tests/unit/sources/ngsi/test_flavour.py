"""Which broker answers, against test brokers without a network."""

from __future__ import annotations

import httpx
import pytest

from builders.linked_data import LinkedDataNetwork
from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.connect import detect

CONNECTION = BrokerConnection("http://broker:1026")


@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio", "stellio"])
def test_a_linked_data_broker_is_detected_by_what_only_it_has(flavour: str) -> None:
    assert detect(CONNECTION, transport=LinkedDataNetwork(flavour).transport()) == flavour


def test_orion_is_detected_by_its_version() -> None:
    network = LinkedDataNetwork("orion-ld")
    network.broker.face = None
    assert detect(CONNECTION, transport=network.transport()) == "orion"


def test_a_page_that_answers_everything_is_no_broker_we_know() -> None:
    page = httpx.MockTransport(lambda _request: httpx.Response(200, text="<html>welcome</html>"))
    assert detect(CONNECTION, transport=page) == "unknown"


def test_credentials_that_are_refused_are_reported() -> None:
    closed = httpx.MockTransport(lambda _request: httpx.Response(401))
    with pytest.raises(ConfigurationError, match="401"):
        detect(CONNECTION, transport=closed)
