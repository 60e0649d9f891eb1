"""The publications that come with Contexture, the schema beside them, and the cost of reading many."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from contexture.cli.schema import editor_schema
from contexture.publications import discover, load_publications

FOLDER = Path(__file__).parents[3] / "include" / "publications"


def test_the_examples_are_right_and_without_notes():
    loaded = discover(FOLDER)
    assert [(each.path.name, each.error, each.notes) for each in loaded] == [
        ("city.yaml", None, ()),
        ("structures.yaml", None, ()),
        ("vehicles.yaml", None, ()),
    ]


def test_the_schema_file_is_the_model():
    assert (FOLDER / "publication.schema.json").read_text(encoding="utf-8") == editor_schema(), (
        "run: contexture schema > include/publications/publication.schema.json"
    )


@pytest.mark.parametrize("name", ["city.yaml", "structures.yaml", "vehicles.yaml"])
def test_the_examples_name_the_schema_and_keep_it(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=publication.schema.json\n")
    schema = json.loads(editor_schema())
    Draft202012Validator.check_schema(schema)
    assert list(Draft202012Validator(schema).iter_errors(yaml.safe_load(text))) == []


def test_the_schema_refuses_an_unknown_key_and_takes_one_text_for_a_list():
    validator = Draft202012Validator(json.loads(editor_schema()))
    source = {"kind": "ngsi", "connection": "b", "service": "s", "service_path": "/a", "types": "car"}
    assert validator.is_valid({"name": "a", "source": source})
    assert not validator.is_valid({"name": "a", "source": source, "topic": {}})


@pytest.mark.slow
def test_two_hundred_files_cost_a_few_times_what_reading_their_yaml_costs(tmp_path):
    text = (FOLDER / "vehicles.yaml").read_text(encoding="utf-8")
    for number in range(200):
        (tmp_path / f"p{number}.yaml").write_text(text.replace("name: vehicles", f"name: p{number}"), encoding="utf-8")
    texts = [file.read_text(encoding="utf-8") for file in sorted(tmp_path.glob("*.yaml"))]
    assert len(load_publications(tmp_path)) == 200

    read = _processor_seconds(lambda: [yaml.load(text, yaml.CSafeLoader) for text in texts])
    # 2.5 times as long when this was written: a tenth of a second.
    assert _processor_seconds(lambda: load_publications(tmp_path)) < 10 * read


def _processor_seconds(work: Callable[[], object]) -> float:
    """The least of five: the machine is shared, and of any speed."""
    took = []
    for _ in range(5):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


@pytest.mark.slow
def test_importing_publications_loads_nothing_heavy():
    script = "import sys, contexture.publications; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "airflow",
        "pyspark",
        "numpy",
        "pandas",
        "pyarrow",
        "httpx",
        "typer",
        "rich",
        "confluent_kafka",
    }
    assert heavy & set(loaded) == set()
