"""The endpoint in Airflow's API server: who may notify, what is kept, and what happens while it can't be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.notifying import HEADERS, body, entity  # noqa: E402
from contexture.errors import ConfigurationError, RetriableError  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.notify_endpoint import NotifyEndpoint, Receptions, notifier_access  # noqa: E402

SetConnection = Callable[..., None]
CARS = """
name: cars
source: {kind: ngsi, connection: broker, service: vehicles, service_path: /4wheels, types: [car], mode: notifications}
"""
TOKEN = {"Authorization": "Bearer s3cret"}
BODY = body(entity(1, speed=1))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class ApiServer:
    """A server that mounts the endpoint as Airflow does, spoken to without a socket."""

    def __init__(self, endpoint: Any) -> None:
        self._application = Starlette(routes=[Mount("/contexture/notify", app=endpoint)])

    async def post(self, name: str = "cars", headers: dict[str, str] = TOKEN, content: bytes = BODY) -> httpx.Response:
        transport = httpx.ASGITransport(self._application)
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
            return await client.post(f"/contexture/notify/{name}", content=content, headers={**HEADERS, **headers})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection) -> Path:
    """A home and a folder with one notified publication."""
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / "cars.yaml").write_text(CARS)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    set_connection("contexture_notify", conn_type="generic", password="s3cret")
    return tmp_path


def kept(home: Path, name: str = "cars") -> list[bytes]:
    reader = Home(str(home / "home")).publication(name).inbox
    return [entry.body for entry in reader.entries(reader.files())]


def run(call: Callable[[], object]) -> object:
    import asyncio

    return asyncio.run(call())  # type: ignore[arg-type]


def test_a_notifier_with_the_connection_s_password_notifies(home: Path) -> None:
    server = ApiServer(NotifyEndpoint(Receptions().build))

    async def story() -> list[int]:
        answers = [
            await server.post(),
            await server.post(headers={}),
            await server.post(headers={"Authorization": "Bearer wrong"}),
            await server.post("buses"),
            await server.post(content=body({**entity(1), "type": "bus"})),
        ]
        return [answer.status_code for answer in answers]

    assert run(story) == [200, 401, 401, 404, 400]
    assert kept(home) == [BODY]


def test_what_airflow_adds_for_itself_does_not_hide_the_secret(home: Path) -> None:
    endpoint = NotifyEndpoint(Receptions().build)

    async def everybody_is_administrator(scope: dict[str, Any], receive: Any, send: Any) -> None:
        scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer airflow's own")]
        await endpoint(scope, receive, send)

    server = ApiServer(everybody_is_administrator)

    async def story() -> list[int]:
        return [(await server.post()).status_code, (await server.post(headers={})).status_code]

    assert run(story) == [200, 401]


def test_a_login_makes_it_a_user(home: Path, set_connection: SetConnection) -> None:
    set_connection("contexture_notify", conn_type="generic", login="orion", password="s3cret")
    server = ApiServer(NotifyEndpoint(Receptions().build))
    basic = {"Authorization": httpx.BasicAuth("orion", "s3cret")._auth_header}

    async def story() -> list[int]:
        return [(await server.post(headers=headers)).status_code for headers in (basic, TOKEN)]

    assert run(story) == [200, 401]


@pytest.mark.parametrize("fields", [None, {"conn_type": "generic"}])
def test_a_publication_without_a_secret_takes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection, fields: dict[str, str] | None
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CONTEXTURE_NOTIFY")
    if fields is not None:
        set_connection("contexture_notify", **fields)
    server = ApiServer(NotifyEndpoint(Receptions().build))

    async def story() -> int:
        return (await server.post()).status_code

    assert run(story) == 401
    assert kept(home) == []
    with pytest.raises(ConfigurationError, match="contexture_notify"):
        notifier_access("contexture_notify")


def test_a_publication_that_is_added_is_notified_soon_and_one_inbox_stays(home: Path) -> None:
    clock = Clock()
    server = ApiServer(NotifyEndpoint(Receptions().build, clock))

    async def story() -> list[int]:
        statuses = [(await server.post()).status_code]
        (home / "publications" / "buses.yaml").write_text(CARS.replace("name: cars", "name: buses"))
        statuses.append((await server.post("buses")).status_code)
        clock.now += 31
        statuses += [(await server.post("buses")).status_code, (await server.post()).status_code]
        return statuses

    assert run(story) == [200, 404, 200, 200]
    assert (kept(home), kept(home, "buses")) == ([BODY, BODY], [BODY])
    assert len({file.writer for file in Home(str(home / "home")).publication("cars").inbox.files()}) == 1


def test_what_can_not_be_kept_is_answered_with_503_and_tried_again_later() -> None:
    tries = []

    def build() -> object:
        tries.append(1)
        raise RetriableError("the disk is gone", next_step="fix it")

    clock = Clock()
    server = ApiServer(NotifyEndpoint(build, clock))  # type: ignore[arg-type]

    async def story() -> list[httpx.Response]:
        answers = [await server.post(), await server.post()]
        clock.now += 6
        return [*answers, await server.post()]

    answers = run(story)
    assert [answer.status_code for answer in answers] == [503, 503, 503]  # type: ignore[attr-defined]
    assert answers[0].headers["retry-after"] == "30"  # type: ignore[index]
    assert len(tries) == 2


def test_loading_the_plugin_loads_nothing_of_what_it_mounts() -> None:
    """Airflow loads plugins in every process, also where tasks begin."""
    code = (
        "import sys, airflow.plugins_manager; before = set(sys.modules); import contexture_plugin; "
        "print(*[mounted['url_prefix'] for mounted in contexture_plugin.ContexturePlugin.fastapi_apps], "
        "*sorted(name for name in sys.modules if 'contexture' in name or ('jinja' in name and name not in before)))"
    )
    plugins = Path(__file__).parents[2] / "plugins"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=plugins,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{plugins}:{plugins.parent / 'include'}"},
    ).stdout.splitlines()[-1]
    # The first prefix that matches answers.
    assert shown.split() == [
        "/contexture/notify",
        "/contexture",
        "contexture_airflow",
        "contexture_airflow.connections",
        "contexture_airflow.connections.provider",  # By Airflow itself, from the installed package.
        "contexture_airflow.notify_endpoint",
        "contexture_airflow.web",
        "contexture_airflow.web.asgi",
        "contexture_plugin",
    ]
