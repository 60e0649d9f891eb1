"""The watch reports each start and each change, once, and never ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.triggers.base")

from builders.outboxes import publication  # noqa: E402
from contexture_airflow.assets import PublicationsWatch  # noqa: E402

SOON_SECONDS = 60.0
A_WHILE_SECONDS = 0.3


class Store:
    """An asset's state store that outlives triggers."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    write(tmp_path, "vehicles")
    return tmp_path


def write(folder: Path, name: str, **changes: Any) -> None:
    settings = publication(name=name, **changes).model_dump(mode="json", exclude_defaults=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(settings))


class Watching:
    """A started watch."""

    def __init__(self, store: Store) -> None:
        watch = PublicationsWatch(poll_seconds=0.01)
        watch.asset_state_store = store  # type: ignore[assignment]
        self._store = store
        self._events = watch.run()
        self._waiting: asyncio.Task[Any] | None = None

    async def event(self, seconds: float = SOON_SECONDS) -> dict[str, Any] | None:
        """The next payload, or None when there is none for that long."""
        self._waiting = self._waiting or asyncio.ensure_future(anext(self._events))
        done, _ = await asyncio.wait([self._waiting], timeout=seconds)
        if not done:
            return None
        payload = self._waiting.result().payload
        self._waiting = None
        assert isinstance(payload, dict)
        return payload

    async def has_kept(self, publications: int) -> None:
        """Goes on after the last event until the watch has kept the fingerprints of so many publications."""
        end = asyncio.get_running_loop().time() + SOON_SECONDS
        while len(self._store.values.get("fingerprints", {})) != publications:
            assert asyncio.get_running_loop().time() < end, "in time"
            assert await self.event(0.01) is None

    async def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()


def watched(scenario: Callable[[Watching], Awaitable[None]], store: Store) -> None:
    """Starts a watch, plays a scenario, stops it."""

    async def play() -> None:
        watching = Watching(store)
        try:
            await scenario(watching)
        finally:
            await watching.stop()

    asyncio.run(play())


async def started(watching: Watching) -> None:
    payload = await watching.event()
    assert payload is not None
    assert payload["startup"] is True


def test_a_start_is_reported_once_and_the_watch_continues(folder: Path) -> None:
    async def scenario(watching: Watching) -> None:
        payload = await watching.event()
        assert payload is not None
        assert (payload["startup"], payload["config_changed"]) == (True, [])
        assert await watching.event(A_WHILE_SECONDS) is None

    watched(scenario, Store())


def test_a_start_counts_from_the_start_of_the_process(folder: Path) -> None:
    """What a scheduled run loads before the trigger comes up is not loaded again."""
    began = datetime.now(UTC)

    async def scenario(watching: Watching) -> None:
        payload = await watching.event()
        assert payload is not None
        assert datetime.fromisoformat(payload["since"]) < began
        await watching.has_kept(1)
        write(folder, "vehicles", topics={"data_model": "dm-by-service"})
        payload = await watching.event()
        assert payload is not None
        assert datetime.fromisoformat(payload["since"]) > began

    watched(scenario, Store())


def test_a_change_is_reported_with_old_and_new(folder: Path) -> None:
    async def scenario(watching: Watching) -> None:
        await started(watching)
        await watching.has_kept(1)
        write(folder, "vehicles", topics={"data_model": "dm-by-service"})
        payload = await watching.event()
        assert payload is not None
        (change,) = payload["config_changed"]
        assert payload["startup"] is False
        assert change["publication"] == "vehicles"
        assert change["old"] != change["new"]

    watched(scenario, Store())


def test_a_change_made_while_everything_was_down_is_reported_at_the_start(folder: Path) -> None:
    async def second(watching: Watching) -> None:
        payload = await watching.event()
        assert payload is not None
        assert payload["startup"] is True
        assert [change["publication"] for change in payload["config_changed"]] == ["vehicles"]

    store = stored_by_one_start()
    write(folder, "vehicles", topics={"data_model": "dm-by-service"})
    watched(second, store)


def test_files_added_removed_and_broken_while_everything_was_down_are_no_change(folder: Path) -> None:
    write(folder, "bikes")
    store = stored_by_one_start(2)
    write(folder, "lamps")
    (folder / "bikes.yaml").unlink()
    (folder / "vehicles.yaml").write_text("name: [")

    async def second(watching: Watching) -> None:
        payload = await watching.event()
        assert payload is not None
        assert (payload["startup"], payload["config_changed"]) == (True, [])
        await watching.has_kept(3)

    watched(second, store)
    assert set(store.values["fingerprints"]) == {"vehicles", "bikes", "lamps"}


def test_what_comes_back_another_one_than_it_went_is_a_change(folder: Path) -> None:
    store = stored_by_one_start()
    (folder / "vehicles.yaml").write_text("name: [")

    async def second(watching: Watching) -> None:
        await started(watching)
        assert await watching.event(A_WHILE_SECONDS) is None
        write(folder, "vehicles", topics={"data_model": "dm-by-service"})
        payload = await watching.event()
        assert payload is not None
        assert [change["publication"] for change in payload["config_changed"]] == ["vehicles"]

    watched(second, store)


def stored_by_one_start(publications: int = 1) -> Store:
    """What a start leaves in the store."""
    store = Store()

    async def first(watching: Watching) -> None:
        await started(watching)
        await watching.has_kept(publications)

    watched(first, store)
    return store


def test_a_change_is_reported_again_when_its_event_was_not_taken(folder: Path) -> None:
    store = Store()

    async def first(watching: Watching) -> None:
        await started(watching)

    watched(first, store)
    assert store.values == {}, "kept only when the event is taken and the watch goes on"


def test_a_new_publication_and_one_edited_without_effect_are_no_change(folder: Path) -> None:
    async def scenario(watching: Watching) -> None:
        await started(watching)
        assert await watching.event(A_WHILE_SECONDS) is None
        write(folder, "bikes")
        write(folder, "vehicles", description="Cars of the fleet", schedule="*/10 * * * *")
        assert await watching.event(A_WHILE_SECONDS) is None

    watched(scenario, Store())


def test_a_file_that_is_broken_for_a_while_is_no_change(folder: Path) -> None:
    async def scenario(watching: Watching) -> None:
        await started(watching)
        assert await watching.event(A_WHILE_SECONDS) is None
        (folder / "vehicles.yaml").write_text("name: [")
        assert await watching.event(A_WHILE_SECONDS) is None
        write(folder, "vehicles")
        assert await watching.event(A_WHILE_SECONDS) is None

    watched(scenario, Store())


def test_it_goes_on_when_the_folder_is_away(folder: Path) -> None:
    async def scenario(watching: Watching) -> None:
        await started(watching)
        (folder / "vehicles.yaml").unlink()
        folder.rmdir()
        assert await watching.event(A_WHILE_SECONDS) is None
        folder.mkdir()
        write(folder, "vehicles", topics={"data_model": "dm-by-service"})
        assert await watching.event() is not None

    watched(scenario, Store())


def test_nothing_that_varies_identifies_it() -> None:
    path, arguments = PublicationsWatch().serialize()
    assert path == "contexture_airflow.assets.PublicationsWatch"
    assert arguments == {"poll_seconds": 5.0}
