"""`contexture report`: what it writes, where to, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.outboxes import outbox, publication, records
from contexture.storage.home import Home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    storage = Home(str(tmp_path / "home"))
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("a")])
    return storage


def test_it_writes_one_page_and_says_where(contexture, tmp_path):
    out = tmp_path / "cars.html"
    done = contexture("report", "vehicles", "--out", str(out))
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"wrote {out} (")
    assert "Data quality of 2 runs" in out.read_text()


def test_without_a_file_it_goes_to_standard_output(contexture):
    done = contexture("report", "vehicles")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("<!doctype html>")


def test_as_json_it_is_one_document(contexture):
    document = json.loads(contexture("report", "vehicles", "--format", "json", "--last", "1").out)
    assert [run["sequence"] for run in document["runs"]] == [2]
    assert document["period"] == {"since": None, "until": None, "last": 1, "run": None}


def test_it_shows_forty_runs_if_nothing_is_chosen_and_all_of_a_time(contexture):
    def period(*chosen: str) -> object:
        return json.loads(contexture("report", "vehicles", "--format", "json", *chosen).out)["period"]

    assert period() == {"since": None, "until": None, "last": 40, "run": None}
    assert period("--since", "2026-03-01") == {
        "since": "2026-03-01T00:00:00Z",
        "until": None,
        "last": None,
        "run": None,
    }


def test_one_run_is_shown_alone(contexture):
    document = json.loads(contexture("report", "vehicles", "--run", "outbox1", "--format", "json").out)
    assert [run["outbox"] for run in document["runs"]] == ["outbox1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none",), "publication none has no files"),
        (("vehicles", "--run", "outbox9"), "no run or outbox outbox9 is stored"),
        (("vehicles", "--run", "outbox1", "--last", "3"), "--run is about one run"),
        (("vehicles", "--since", "2026-03-02", "--until", "2026-03-01"), "--since is not before --until"),
        (("vehicles", "--out", "/nowhere/at/all.html"), "cannot be written"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_to_do(contexture, arguments, said):
    done = contexture("report", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
