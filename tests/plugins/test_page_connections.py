"""Connections on the page: what each sets for a publication and who says so, and those that do not respond."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.page_browser import Browser  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.web import connections  # noqa: E402
from contexture_sandbox.context_broker import TestBroker  # noqa: E402

PAGE = "publications/vehicles/connections"


@pytest.fixture
def listening() -> Iterator[int]:
    """The port of a server that only listens."""
    with create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def connected(browser: Browser, set_connection: Any) -> Browser:
    extra = {"bootstrap.servers": "127.0.0.1:9", "max.request.size": 5000, "sasl.password": "hush-1"}
    set_connection("kafka_default", conn_type="kafka", extra=extra)
    access = {"headers": {"X-Key": "hush-2"}, "timeout_seconds": 7, "token": "hush-3", "color": "hush-4"}
    login = {"login": "ana", "password": "hush-5"}
    set_connection("context_broker", conn_type="http", host="127.0.0.1", port=9, extra=access, **login)
    return browser


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each property, by its name."""
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    plain = [[re.sub(r"<[^>]+>", "", cell) for cell in row] for row in found]
    return {row[0]: row[1:] for row in plain}


def test_every_property_is_shown_with_value_default_origin_and_a_line(connected: Browser) -> None:
    text = connected.get(PAGE).text
    found = rows(text)
    assert found["message.max.bytes"][:3] == ["5000", "1000000", "connection, as max.request.size"]
    assert found["acks"][:3] == ["all", "-1", "enforced by Contexture"]
    assert found["linger.ms"][:3] == ["20", "5", "Contexture&#39;s default"]
    assert found["reconnect.backoff.ms"][:3] == ["100", "100", "default of the Kafka client"]
    assert found["transactional.id"][:3] == [
        "tx.vehicles.&lt;shard&gt;",
        "none",
        "publication file",
    ]
    assert found["timeout_seconds"][:3] == ["7", "60", "connection"]
    assert found["verify"][:3] == ["true", "true", "Contexture&#39;s default"]
    assert found["Fiware-Service"][:3] == ["vehicles", "none", "publication file"]
    assert found["Fiware-Service"][3] == "The tenant that is read (source.service)"
    assert found["Accept-Encoding"][:3] == ["gzip", "gzip", "enforced by Contexture"]
    assert found["color"][:3] == ["***", "none", "not used by Contexture"]
    assert len(found) > 180
    assert not [name for name, cells in found.items() if name != "Property" and not cells[3]]


def test_no_secret_is_shown(connected: Browser) -> None:
    text = connected.get(PAGE).text
    found = rows(text)
    assert "hush" not in text
    assert found["sasl.password"][0] == found["password"][0] == found["token"][0] == "***"
    assert found["headers"][0] == "X-Key: ***"
    assert found["login"][0] == "ana"


def test_who_may_not_see_a_connection_sees_none_of_its_properties(connected: Browser) -> None:
    answer = connected.get(PAGE, "eve")
    assert (answer.status_code, "2 connections are not shown" in answer.text) == (200, True)
    assert "127.0.0.1" not in answer.text
    assert connected.get(PAGE, "ben").status_code == 404


def test_a_connection_that_cannot_be_used_says_why(browser: Browser, set_connection: Any) -> None:
    set_connection("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "a:1", "acks": "0"})
    text = browser.get(PAGE).text
    assert "acks: remove it (Contexture needs acks=all)" in text
    assert "there is no Airflow connection &#39;context_broker&#39;" in text


def test_the_overview_loads_afterwards_which_connections_cannot_be_reached(
    connected: Browser, set_connection: Any, listening: int
) -> None:
    # The first use of a connection to Kafka imports its client, which may take long.
    assert connected.get(PAGE).status_code == 200
    assert 'id="unreachable" data-load="/contexture/connections/unreachable"' in connected.get("").text
    text = connected.get("connections/unreachable").text
    assert "The connection <code>context_broker</code> cannot be reached" in text
    assert "127.0.0.1:9: nothing listens there" in text
    assert ">vehicles</a>" in text
    # A corrected connection is probed at once, though the last result is fresh.
    set_connection("kafka_default", conn_type="kafka", extra={"bootstrap.servers": f"127.0.0.1:{listening}"})
    assert "kafka_default" not in connected.get("connections/unreachable").text
    with TestBroker() as broker:
        host, _, port = broker.url.removeprefix("http://").partition(":")
        set_connection("context_broker", conn_type="http", host=host, port=int(port))
        assert "problem" not in connected.get("connections/unreachable").text


def test_why_a_connection_cannot_be_reached_is_for_those_who_may_see_it(connected: Browser) -> None:
    text = connected.get("connections/unreachable", "eve").text
    assert "The connection <code>kafka_default</code> cannot be reached." in text
    assert "127.0.0.1" not in text
    assert "vehicles" not in connected.get("connections/unreachable", "ben").text


def test_a_source_that_does_not_respond_holds_the_page_for_two_seconds_at_most(
    home: Home, browser: Browser, set_connection: Any, listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("vehicles", "buses"):
        path = Path(home.root).parent / "publications" / f"{name}.yaml"
        path.write_text(path.read_text().replace("context_broker", f"broker_{name}"))
        set_connection(f"broker_{name}", conn_type="http", host="127.0.0.1", port=listening)
    monkeypatch.setattr(connections, "_PROBE_SECONDS", 10.0)
    started = time.monotonic()
    text = browser.get("connections/unreachable").text
    assert time.monotonic() - started < 8
    assert text.count("no response within 2 s") == 2
