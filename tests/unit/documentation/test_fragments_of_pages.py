"""What pages contain beside commands: parts of publications, Python, JSON, TOML and settings of Airflow."""

from __future__ import annotations

import ast
import configparser
import json
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.pages import Block, blocks, pages
from contexture.publications import load_publication_file

NGSI: dict[str, Any] = {
    "name": "vehicles",
    "source": {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
}
SDMX: dict[str, Any] = {
    "name": "structures",
    "source": {"kind": "sdmx", "connection": "registry"},
    "topics": {"topics": ["structures"]},
}
OF_REGISTRIES = {"how-to/check-structures.md", "how-to/publish-structures.md"}
SCHEMA = {"$id": "https://models.example/schema.json", "type": "object"}


class Words(yaml.SafeLoader):
    """Reads `on` and `off` as the words that they are in publications."""


Words.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in found if first not in "oO" or tag != "tag:yaml.org,2002:bool"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def written(*languages: str) -> list[Block]:
    return [each for page in pages() for each in blocks(page) if each.language in languages]


def name(found: Block) -> str:
    return f"{found.page}:{found.line}"


def fragments() -> list[Block]:
    """Parts of publications: those that have no name; whole ones are loaded by test_reference.py."""
    return [each for each in written("yaml") if "name" not in yaml.safe_load(each.text)]


def test_there_are_some_of_each():
    counts = {language: len(written(language)) for language in ("python", "json", "toml", "ini")}
    assert min(counts.values()) >= 1
    assert (counts["python"] > 8, len(fragments()) > 12) == (True, True)


@pytest.mark.parametrize("found", fragments(), ids=name)
def test_parts_of_publications_are_right_in_one(found: Block, tmp_path: Path):
    base = SDMX if found.page in OF_REGISTRIES else NGSI
    part = yaml.load(found.text, Words)
    document = {**base, **part}
    for section in ("source", "topics"):
        document |= {section: {**base.get(section, {}), **part.get(section, {})}}
    for model in part.get("quality", {}).get("models", {}).values():
        (tmp_path / model).parent.mkdir(parents=True)
        (tmp_path / model).write_text(json.dumps(SCHEMA))
    file = tmp_path / f"{document['name']}.yaml"
    file.write_text(yaml.safe_dump(document))
    assert load_publication_file(file).name == document["name"]


@pytest.mark.parametrize("found", written("python"), ids=name)
def test_python_compiles_and_what_it_imports_is_there(found: Block):
    for node in ast.walk(ast.parse(found.text)):
        if isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


@pytest.mark.parametrize("found", written("json"), ids=name)
def test_json_can_be_read(found: Block):
    assert isinstance(json.loads(found.text), dict)


@pytest.mark.parametrize("found", written("toml"), ids=name)
def test_toml_can_be_read(found: Block):
    assert tomllib.loads(found.text)


@pytest.mark.parametrize("found", written("ini"), ids=name)
def test_settings_of_airflow_are_ones_that_it_knows(found: Block):
    given = configparser.ConfigParser()
    given.read_string(found.text)
    for section in given.sections():
        assert set(given[section]) <= known_options(section)


def known_options(section: str) -> set[str]:
    """The options of a section of Airflow or its lineage provider, by the files that declare them."""
    (core,) = find_spec("airflow").submodule_search_locations or []  # type: ignore[union-attr]
    if section == "openlineage":
        from airflow.providers.openlineage.get_provider_info import get_provider_info

        return set(get_provider_info()["config"][section]["options"])
    declared = yaml.safe_load((Path(core) / "config_templates" / "config.yml").read_text(encoding="utf-8"))
    return set(declared[section]["options"])
