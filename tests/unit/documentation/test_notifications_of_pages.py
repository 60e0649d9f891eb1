"""The endpoint for notifications and its subscription, as the page has them, beside the sandbox's context broker."""

from __future__ import annotations

import json
import time

import httpx

from builders.pages import block
from contexture.storage.home import Home
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.ports import free_port

PAGE = "how-to/receive-notifications.md"
CAR = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 5}}
PATIENCE_SECONDS = 60.0


def test_what_the_broker_notifies_by_the_page_s_subscription_is_kept(terminal):
    port, token = free_port(), terminal.folder / "notify"
    token.write_text("THE-TOKEN\n")
    (terminal.folder / "publications" / "cars.yaml").write_text("name: vehicles\n" + block(PAGE, "mode: notifications"))
    script = block(PAGE, "contexture notify serve").replace("5050", str(port)).replace("0.0.0.0", "127.0.0.1")
    script = script.replace("/run/secrets/notify", str(token)).replace("include/publications", "publications")
    home = terminal.folder / "home"
    with TestBroker() as broker, terminal.beside(script.replace("/srv/contexture", str(home))) as address:
        assert address == f"vehicles: http://127.0.0.1:{port}/contexture/notify/vehicles"
        subscribe(broker.url, block(PAGE, "POST /v2/subscriptions").replace("contexture:5050", f"127.0.0.1:{port}"))
        headers = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/4wheels"}
        httpx.post(f"{broker.url}/v2/entities", json=CAR, headers=headers).raise_for_status()
        assert '"alterationType"' in kept(Home(str(home)))


def subscribe(url: str, request: str) -> None:
    """Sends a request as it is written on the page."""
    head, _, body = request.partition("\n\n")
    first, *lines = head.splitlines()
    method, path = first.split()
    headers = dict(line.split(": ") for line in lines)
    httpx.request(method, f"{url}{path}", headers=headers, json=json.loads(body)).raise_for_status()


def kept(storage: Home) -> str:
    """The first notification of the inbox, when it is there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    reader = storage.publication("vehicles").inbox
    while not (entries := list(reader.entries(reader.files()))):
        assert time.monotonic() < deadline, f"nothing is kept within {PATIENCE_SECONDS} s"
        time.sleep(0.1)
    return entries[0].body.decode()
