"""`contexture state rebuild`: what it says, and when it writes; the reading itself has tests of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from contexture.cli import state
from contexture.operations.actions import rebuild
from contexture.operations.recovery.state import RebuiltState

FILE = "name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: a, service_path: /b}\n"
KEYLESS = """name: keyless
source: {kind: ngsi, connection: context_broker, service: a, service_path: /b, detect_deletions: false}
topics: {keep: history}
message: {key: none}
"""
FOUND = RebuiltState(
    publication="vehicles",
    topics=2,
    missing=("gone",),
    records=30,
    held=1,
    found=12,
    with_content=9,
    samples=('["a","/b","car1","car\\u001b[2J"]',),
    left_alone={"of another publication": 4},
    sequence=8,
)


class Written:
    """Replaces topics that were read."""

    def __init__(self, found: RebuiltState = FOUND) -> None:
        self.found = found
        self.asked: list[bool] = []

    def write(self, *, only_differences: bool) -> None:
        self.asked.append(only_differences)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Written:
    made = Written()

    @contextmanager
    def opened(name: str, pattern: str | None, **_: Any) -> Iterator[tuple[Written, RebuiltState]]:
        yield made, made.found

    monkeypatch.setattr(rebuild, "opened", opened)
    return made


def called(*arguments: str, answer: str = "") -> str:
    done = CliRunner().invoke(state.app, ["rebuild", "vehicles", *arguments], input=answer)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_was_found_is_shown_before_anything_is_written(read: Written) -> None:
    said = called(answer="n\n")

    assert said.splitlines()[:8] == [
        "vehicles: 30 records in 2 topics were read",
        "  topic gone does not exist, or this user may not see it",
        "  12 identities were found that state does not hold (1 it does)",
        """    '["a","/b","car1","car\\\\u001b[2J"]'""",
        "    and 11 more",
        "  for 9 of them, the content is known too",
        "  not changed, of another publication: 4 keys",
        "Write state? [y/N]: n",
    ]
    assert said.endswith("nothing was written\n")
    assert read.asked == []


@pytest.mark.parametrize(("arguments", "answer"), [(("--yes",), ""), ((), "y\n")])
def test_it_is_written_when_a_person_says_so(read: Written, arguments: tuple[str, ...], answer: str) -> None:
    assert "contexture resync vehicles --mode full" in called(*arguments, answer=answer)
    assert read.asked == [False]


def test_a_dry_run_asks_nothing(read: Written) -> None:
    said = called("--dry-run")
    assert said.endswith("nothing was written\n")
    assert "Write state?" not in said
    assert called("--dry-run", "--yes").endswith("nothing was written\n")
    assert read.asked == []


def test_scripts_get_one_document_and_write_only_when_they_say_so(read: Written) -> None:
    assert json.loads(called("--json"))["written"] is False
    document = json.loads(called("--json", "--yes", "--only-differences"))
    assert (document["written"], document["found"], document["left_alone"]) == (True, 12, {"of another publication": 4})
    assert read.asked == [True]


def test_where_nothing_is_missing_nothing_is_asked(read: Written) -> None:
    read.found = RebuiltState("vehicles", 1, (), 3, 3, 0, 0, (), {}, 8)

    assert called().endswith("nothing was written\n")


@pytest.fixture
def files(tmp_path, monkeypatch):
    folder = tmp_path / "publications"
    folder.mkdir()
    (folder / "vehicles.yaml").write_text(FILE)
    (folder / "keyless.yaml").write_text(KEYLESS)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder))
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT", raising=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trains",), "there is no publication trains. Next: choose among: keyless, vehicles"),
        (("keyless",), "its records have no keys (message.key: none)"),
        (("vehicles",), "there is no Kafka connection 'kafka_default' in the environment"),
    ],
)
def test_what_is_missing_is_reported(contexture, files, arguments, said):
    done = contexture("state", "rebuild", *arguments)
    assert done.code == 2
    assert said in done.err
