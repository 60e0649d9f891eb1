"""`contexture check --sizes`: what is too large is known before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.registry import SEX_AND_FLOW, codelists, urn
from builders.transcoding import MAPPINGS, message
from contexture_sandbox.registry import TestRegistry, seed_codelist

FILE = """\
name: structures
source: {kind: sdmx, connection: registry, select: ["Codelist=*:*(*)"]}
topics: {topics: [structures]}
"""
LARGE = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CITY:CL_00000(1.0)"


@pytest.fixture(scope="module")
def running() -> Iterator[TestRegistry]:
    with TestRegistry() as registry:
        yield registry


@pytest.fixture
def registry(running: TestRegistry, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestRegistry]:
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", "host": running.url}))
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT", raising=False)
    running.submit(SEX_AND_FLOW)
    yield running
    running.faults.clear()
    running.store.clear()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))

    def write(text: str = FILE) -> str:
        path = tmp_path / "structures.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def connect_kafka(monkeypatch: pytest.MonkeyPatch, **extra: object) -> None:
    fields = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9", **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(fields))
    monkeypatch.setattr("contexture.operations.actions.structure_sizes.WAIT_SECONDS", 0.2)


def test_what_fits_is_shown_with_the_largest(contexture, registry, written):
    done = contexture("check", "--sizes", written())
    assert done.code == 0
    assert done.out.startswith("structures: 1 of 1 selected structures measured, the largest ")
    assert "there is no connection to Kafka in the environment; only what is known" in done.out
    assert done.out.endswith("  all of them fit\n")


@pytest.mark.slow
def test_each_structure_above_a_limit_is_listed_with_the_limit(contexture, registry, written, monkeypatch):
    registry.submit(seed_codelist(0, codes=1000))
    connect_kafka(monkeypatch, **{"message.max.bytes": 50_000})
    done = contexture("check", "--sizes", "--json", written())
    document = json.loads(done.out)
    assert (done.code, document["fit"]) == (1, False)
    [found] = document["publications"]
    [large] = found["too_large"]
    assert (found["selected"], found["measured"], large["urn"]) == (2, 2, LARGE)
    assert large["size_bytes"] > 50_000
    assert large["exceeded"] == [
        {"limit": "client", "name": "message.max.bytes", "allowed_bytes": 50_000, "topic": None}
    ]


@pytest.mark.slow
def test_the_envelope_counts(contexture, registry, written):
    sizes = {}
    for envelope in ("none", "cloudevents-binary", "cloudevents-structured"):
        done = contexture("check", "--sizes", "--json", written(f"{FILE}message: {{envelope: {envelope}}}\n"))
        [found] = json.loads(done.out)["publications"]
        sizes[envelope] = found["largest_bytes"]
    # Attributes take some hundred bytes, and in JSON every quotation mark of the message takes one more.
    assert 400 < sizes["cloudevents-binary"] - sizes["none"] < 800
    assert 300 < sizes["cloudevents-structured"] - sizes["none"] < 1500


@pytest.mark.slow
def test_all_structures_of_a_topic_are_compared_where_they_are_one_message(contexture, registry, written, monkeypatch):
    for number in range(4):
        registry.submit(seed_codelist(number, codes=20))
    connect_kafka(monkeypatch, **{"message.max.bytes": 5_000})
    text = FILE.replace("[structures]}", "[structures], keep: history}")
    apart = contexture("check", "--sizes", written(text))
    assert (apart.code, "all of them fit" in apart.out) == (0, True)

    together = contexture("check", "--sizes", "--json", written(f"{text}message: {{bundle: transaction}}\n"))

    [found] = json.loads(together.out)["publications"]
    [large] = found["too_large"]
    assert (together.code, large["urn"], large["topics"]) == (1, "one message of all for structures", ["structures"])
    assert large["size_bytes"] > 5_000
    assert large["exceeded"] == [
        {"limit": "client", "name": "message.max.bytes", "allowed_bytes": 5_000, "topic": None}
    ]


@pytest.mark.slow
def test_a_topic_is_compared_with_what_is_left_after_compression(contexture, registry, written, monkeypatch):
    registry.submit(seed_codelist(0, codes=1000))
    connect_kafka(monkeypatch)
    limited = FILE.replace("[structures]}", "[structures], config: {max.message.bytes: 50000}}")
    fits = contexture("check", "--sizes", written(limited))
    assert (fits.code, "all of them fit" in fits.out) == (0, True)
    small = contexture("check", "--sizes", written(limited.replace("50000", "3000")))
    assert small.code == 1
    assert f"too large: {LARGE}: " in small.out
    assert "max.message.bytes of topic structures is 3,000" in small.out


def test_a_publication_is_found_by_its_name(contexture, registry, written):
    written()
    assert contexture("check", "structures", "--sizes").out.startswith("structures: 1 of 1 selected")


def test_what_the_format_can_not_express_is_listed(contexture, registry, written):
    text = FILE.replace("select:", "media_type: application/vnd.sdmx.structure+json;version=2.0.0, select:")
    done = contexture("check", "--sizes", written(text))
    assert done.code == 0
    assert "structures: 0 of 1 selected structures measured\n" in done.out
    assert (
        "produces no event: urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1): the registry lists"
        in done.out
    )


def test_what_is_converted_is_measured_as_it_would_be_sent(contexture, registry, written):
    text = FILE.replace("select:", "media_type: application/vnd.sdmx.structure+json;version=2.0.0, select:")
    done = contexture("check", "--sizes", "--json", written(f"{text}message: {{allow_lossy: true}}\n"))
    [found] = json.loads(done.out)["publications"]
    assert (found["measured"], found["inexpressible"]) == (1, {})
    in_ml = json.loads(contexture("check", "--sizes", "--json", written()).out)["publications"][0]
    assert 0 < found["largest_bytes"] < in_ml["largest_bytes"]


@pytest.mark.slow
def test_what_can_not_be_converted_is_listed_with_the_reason(contexture, registry, written):
    registry.submit(message(("StructureSets", MAPPINGS)))
    text = FILE.replace('["Codelist=*:*(*)"]', '["StructureSet=*:*(*)"]').replace(
        "select:", "media_type: application/vnd.sdmx.structure+json;version=2.0.0, select:"
    )
    done = contexture("check", "--sizes", written(f"{text}message: {{allow_lossy: true}}\n"))
    assert "produces no event: urn:sdmx:org.sdmx.infomodel.mapping.StructureSet=X:MAPS(1.0): " in done.out
    assert "cannot be converted into SDMX-JSON 2.0" in done.out


def test_structures_that_come_together_are_each_measured_once(contexture, registry, written):
    registry.submit(codelists(*(f'<str:Codelist id="CL_{n}" agencyID="X" version="1.0"/>' for n in range(9))))
    done = contexture("check", "--sizes", "--json", written())
    [found] = json.loads(done.out)["publications"]
    assert (found["selected"], found["measured"]) == (10, 10)
    reads = [request.path for request in registry.requests if "detail" not in request.parameters]
    assert "/sdmx/v2/structure/codelist/X/*/*" in reads
    assert urn("CL_3").rpartition(":")[2] not in " ".join(reads)


def test_a_registry_that_is_away_gives_exit_code_3(contexture, registry, written, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", "host": "http://127.0.0.1:9"}))
    monkeypatch.setattr("contexture.sources.sdmx.registry.transport.ATTEMPTS", 1)
    done = contexture("check", "--sizes", written())
    assert done.code == 3
    assert "the structure registry at http://127.0.0.1:9 cannot be reached" in done.out


def test_a_connection_that_is_not_there_gives_exit_code_2(contexture, registry, written, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_REGISTRY")
    done = contexture("check", "--sizes", written())
    assert done.code == 2
    assert "set AIRFLOW_CONN_REGISTRY as Airflow has it" in done.out


def test_a_broken_file_gives_exit_code_1(contexture, registry, written):
    done = contexture("check", "--sizes", written(FILE.replace("Codelist=*:*(*)", "Codelist")))
    assert done.code == 1


def test_entities_are_not_measured(contexture, written):
    path = written("name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: city}\n")
    done = contexture("check", "--sizes", path)
    assert done.code == 0
    assert "vehicles: not measured: it reads a context broker" in done.out
