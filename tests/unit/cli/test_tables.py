"""`contexture tables rebuild` says what it needs."""

from __future__ import annotations

import pytest

FILE = "name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: a, service_path: /b}\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "publications"
    folder.mkdir()
    (folder / "vehicles.yaml").write_text(FILE)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder))
    for name in ("CONTEXTURE_DATABASE", "AIRFLOW_CONN_KAFKA_DEFAULT"):
        monkeypatch.delenv(name, raising=False)


def test_a_publication_without_a_file_is_told(contexture):
    done = contexture("tables", "rebuild", "trains")
    assert done.code == 2
    assert "there is no good publication file for trains. Next: name some of vehicles" in done.err


def test_a_connection_that_is_not_in_the_environment_is_told(contexture):
    done = contexture("tables", "rebuild")
    assert done.code == 2
    assert "there is no Kafka connection 'kafka_default' in the environment" in done.err
