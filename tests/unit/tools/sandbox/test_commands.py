"""The commands of the sandbox as its README shows them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import httpx
import pytest

from contexture_sandbox.context_broker.command import LinkedDataFlavour
from contexture_sandbox.context_broker.linked_data import FLAVOURS

pytestmark = pytest.mark.slow

CONTEXT = '<https://example.org/c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'


@contextmanager
def started(folder: Path, *words: str) -> Iterator[httpx.Client]:
    """Runs a command away from the checkout; it has to end at Ctrl-C with exit code 0."""
    command = [sys.executable, "-m", "contexture_sandbox", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            with httpx.Client(base_url=process.stdout.readline().strip(), trust_env=False, timeout=10) as client:
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(30)
    assert ended == 0


def test_every_flavour_of_linked_data_can_be_chosen() -> None:
    assert set(get_args(LinkedDataFlavour)) == set(FLAVOURS)


def test_a_context_broker_answers_both_apis_and_fails_on_demand(tmp_path: Path) -> None:
    with started(tmp_path, "context-broker", "--entities", "50", "--linked-data", "orion-ld") as client:
        car = {"id": "urn:ngsi-ld:Car:1", "type": "Car", "speed": {"type": "Property", "value": 54}}
        created = client.post("/ngsi-ld/v1/entities", headers={"Link": CONTEXT}, json=car)
        cars = client.get("/ngsi-ld/v1/entities", params={"type": "Car"}, headers={"Link": CONTEXT})
        client.headers["Fiware-Service"] = "vehicles"
        v2 = client.get("/v2/entities")
        fault = {"kind": "status", "status": 503, "nth": 2, "times": 3}
        client.post("/sandbox/faults", json={"faults": [fault]}).raise_for_status()
        failing = [client.get("/v2/entities").status_code for _ in range(5)]

    assert (created.status_code, cars.json()) == (201, [car])
    assert v2.status_code == 200
    assert v2.json()
    assert failing == [200, 503, 503, 503, 200]


def test_a_broker_of_linked_data_alone_fails_below_its_own_path(tmp_path: Path) -> None:
    with started(tmp_path, "context-broker", "--linked-data", "scorpio") as client:
        fault = {"kind": "status", "path": "/ngsi-ld/"}
        client.post("/sandbox/faults", json={"faults": [fault]}).raise_for_status()
        statuses = [client.get("/ngsi-ld/v1/entities", params={"type": "Car"}).status_code for _ in range(2)]
        v2 = client.get("/v2/entities")

    assert (statuses, v2.status_code) == ([503, 200], 404)


@pytest.mark.parametrize(
    ("words", "path"), [((), "/sdmx/v2/structure/*/*/*/*"), (("--face", "plain"), "/rest/v2/structure/*/*/*/*")]
)
def test_a_registry_answers_and_loses_content_on_demand(tmp_path: Path, words: tuple[str, ...], path: str) -> None:
    with started(tmp_path, "registry", "--structures", "20", *words) as client:
        whole = client.get(path)
        client.post("/sandbox/faults", json=[{"kind": "empty"}]).raise_for_status()
        empty = client.get(path)
        unknown = client.post("/sandbox/faults", json=[{"kind": "churn"}])

    assert (whole.status_code, empty.status_code) == (200, 200)
    assert (whole.text.count("<str:Codelist ") > 0, empty.text.count("<str:Codelist ")) == (True, 0)
    assert (unknown.status_code, "unknown kind of fault churn" in unknown.text) == (400, True)
