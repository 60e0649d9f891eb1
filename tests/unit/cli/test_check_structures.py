"""`contexture check` on a publication of structures: selectors read whole, and where structures would go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contexture.cli import app
from contexture_sandbox.registry import TestRegistry, seed_message

FILE = """\
name: structures
source:
  kind: sdmx
  connection: registry
  select: ["Codelist=CITY.*:*(*)", "Dataflow=*:*(*)"]
topics:
  routes:
    - {select: "Codelist=CITY.TRAFFIC:*(*)", topics: "lists,traffic"}
    - {select: "Dataflow=*:*(~)", topics: "flows-{agency}"}
"""


@pytest.fixture(autouse=True)
def no_connections(monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_REGISTRY", raising=False)


@pytest.fixture(scope="module")
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        running.submit(seed_message(30))
        yield running


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str, name: str = "structures.yaml") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["check", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_defaults_of_a_registry_s_publication_are_marked_as_defaults(written):
    output = run(written(FILE))
    assert "  naming: fixed  # default\n" in output
    assert "  shards: 1  # default\n" in output
    assert "  format: sdmx  # default\n" in output
    assert "for a preview set AIRFLOW_CONN_REGISTRY, or give --source http://host:8080" in output


def test_keys_of_brokers_are_not_shown_for_a_registry(written):
    output = run(written(FILE))
    assert "  registrations: false  # default\n" in output
    for key in ("service_path:", "data_model:", "batch_size:", "transaction_records:", "coerce_numbers:"):
        assert key not in output


def test_a_selector_is_read_whole_and_reported_with_its_line(written):
    output = run(written(FILE.replace("Dataflow=*:*(*)", "Dataflov=*:*(*)")), code=1)
    assert "structures.yaml:5:" in output
    assert "no kind is called 'Dataflov'" in output
    assert "did you mean Dataflow" in output


def test_the_selector_of_a_route_is_read_whole_too(written):
    output = run(written(FILE.replace("Dataflow=*:*(~)", "Dataflov=*:*(~)")), code=1)
    assert "structures.yaml:9:" in output
    assert "0 of 1 right" in output


def test_every_selector_that_cannot_be_read_is_reported_in_one_call(written):
    wrong = FILE.replace("Dataflow=*:*(*)", "Dataflov=*:*(*)").replace("Dataflow=*:*(~)", "Dataflov=*:*(~)")
    assert run(written(wrong), code=1).count("no kind is called") == 2


def test_the_preview_of_a_message_counts_topics(written, tmp_path):
    sample = tmp_path / "structures.xml"
    sample.write_bytes(seed_message(30))
    (found,) = json.loads(run(written(FILE), "--sample", str(sample), "--json"))["publications"]
    assert found["structures"]["held"] == 30
    assert found["structures"]["topics"] == {
        "flows-CITY": 2,
        "flows-CITY.HEALTH": 2,
        "flows-CITY.TRAFFIC": 2,
        "lists": 6,
        "traffic": 6,
    }
    assert len(found["structures"]["unrouted"]) == 6


def test_the_preview_of_a_registry_shows_topics_and_what_goes_nowhere(written, registry):
    output = run(written(FILE), "--source", registry.url)
    assert "18 of 30 structures are selected, for 5 topics" in output
    assert "         6  traffic\n" in output
    assert (
        "6 are not published, because no route selects them: urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CITY.HEALTH"
        in output
    )


def test_the_registry_of_the_connection_is_asked(written, registry, monkeypatch):
    host, port = registry.url.removeprefix("http://").split(":")
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", "host": host, "port": int(port)}))
    assert f"preview of {registry.url}" in run(written(FILE))


@pytest.mark.slow
def test_a_registry_that_is_away_has_an_exit_code_of_its_own(written):
    assert "no preview:" in run(written(FILE), "--source", "http://127.0.0.1:9", code=3)
