"""The text of a proposed publication: it passes the check, as it is and with everything uncommented."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.operations.actions.entity_profile import RuleCandidate
from contexture.operations.actions.proposed_publication import (
    ProposedEntities,
    ProposedStructures,
    load_text,
    write_file,
)
from contexture.publications import NgsiPublication, yaml_document
from contexture.publications.yaml_document import quote

CANDIDATES = (
    RuleCandidate("required", "bikes", None, "in all 40 sampled entities"),
    RuleCandidate("range", "bikes", (0.0, 50.0), "sampled: 3 to 22"),
    RuleCandidate("pattern", "plate", "^[A-Z]{2}\\-[0-9]{4}$", "all 40 different texts of the sample match"),
    RuleCandidate("required", "status", None, "in all 40 sampled entities"),
    RuleCandidate("enumeration", "status", ("working", "out of order"), "sampled: 30 times, 10 times"),
)
BIKES = ProposedEntities(
    name="bikes",
    connection="city_broker",
    kafka="city_kafka",
    topics=("bikes", "all"),
    schedule="*/5 * * * *",
    selected=41,
    service="city",
    service_paths=("/transport",),
    types=("Bike",),
    candidates=CANDIDATES,
)
BIKES_FILE = r"""# Made by `contexture new`; docs/reference/publication.md explains all keys.
name: bikes
schedule: "*/5 * * * *"  # when the source is read
source:
  kind: ngsi
  connection: city_broker
  service: "city"
  service_path: ["/transport"]
  types: ["Bike"]
  detect_deletions: true  # a record without a value for each entity that is deleted
topics:
  naming: fixed
  topics: ["bikes", "all"]  # every entity goes to each of them
  keep: latest  # compacted: the newest record of each entity stays; history: every change does
  # replication_factor: 3  # without it the brokers' own default
publish:
  connection: city_kafka
quality:
  minimum_entities: 20  # half of the 41 of today: a source that shows less stops the run
  # An entity without one goes to quarantine; without the rule it would stop the run. Uncomment what must hold:
  # required_attributes: ["bikes", "status"]  # in all 40 sampled entities
  # rules: {required-attr: error}
  ranges:  # a number outside is published, counted, and marks the run
    "bikes": {minimum: 0, maximum: 50}  # sampled: 3 to 22
  allowed_values:  # another value is published, and counted
    "status": ["working", "out of order"]  # sampled: 30 times, 10 times
  # Other texts mark the run, which takes some seconds more. Uncomment what must hold:
  # expectations:
  #   - name: expect_column_values_to_match_regex
  #     on: attributes
  #     where: "attribute = 'plate'"  # all 40 different texts of the sample match
  #     kwargs: {column: text, regex: "^[A-Z]{2}\\-[0-9]{4}$", severity: warning}
"""
CODES = ProposedStructures(
    name="codes",
    connection="registry",
    kafka="kafka_default",
    topics=("codes",),
    schedule=None,
    selected=1,
    agencies=("ECB", "SDMX"),
    classes=("Codelist", "Dataflow"),
    media_type="application/vnd.sdmx.structure+xml;version=2.1",
)
CODES_FILE = """# Made by `contexture new`; docs/reference/publication.md explains all keys.
name: codes
# schedule: "*/5 * * * *"  # without it runs start by hand
source:
  kind: sdmx
  connection: registry
  select: ["Codelist,Dataflow=ECB,SDMX:*(*)"]  # CLASS=AGENCY:ID(VERSION), * for any
  media_type: "application/vnd.sdmx.structure+xml;version=2.1"  # the format of the values
topics:
  topics: ["codes"]  # every structure goes to each of them
  keep: latest  # compacted: the newest record of each structure stays; history: every change does
  # replication_factor: 3  # without it the brokers' own default
publish:
  connection: kafka_default
quality:
  minimum_entities: 1  # half of the 1 of today: a source that shows less stops the run
"""
HOSTILE = "https://x.org/\"a\": 'b' # c\n"
# A key or an item of a list behind the mark is YAML; prose is not.
_COMMENTED = re.compile(r"^( *)# (?=( *- )?[ a-z_]+:( |$))", re.MULTILINE)


def uncommented(text: str) -> str:
    return _COMMENTED.sub(r"\1", text)


def test_entities_of_a_broker():
    assert BIKES.text() == BIKES_FILE


def test_structures_of_a_registry():
    assert CODES.text() == CODES_FILE


@pytest.mark.parametrize(
    "proposed",
    [
        BIKES,
        replace(BIKES, requires=True),
        replace(BIKES, topics=(), data_model="dm-by-service-path", service_paths=(), types=(), schedule=None),
        replace(BIKES, service="", candidates=()),
        replace(BIKES, api="ngsi-ld", context="https://example.org/context.jsonld", service_paths=()),
        replace(BIKES, candidates=tuple(replace(each, attribute=f"{HOSTILE}{each.attribute}") for each in CANDIDATES)),
        CODES,
        replace(CODES, agencies=(), classes=()),
        replace(CODES, classes=()),
        replace(CODES, agencies=()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_proposal_passes_the_check_as_it_is_and_uncommented(proposed: ProposedEntities | ProposedStructures):
    for text in (proposed.text(), uncommented(proposed.text())):
        loaded = load_text(proposed.name, text)
        assert (loaded.error, loaded.notes) == (None, ())


def test_what_is_uncommented_is_in_force():
    publication = load_text("bikes", uncommented(BIKES.text())).publication
    assert isinstance(publication, NgsiPublication)
    assert publication.quality.required_attributes == ("bikes", "status")
    assert publication.quality.rules == {"required-attr": "error"}
    assert publication.quality.expectations[0].kwargs["regex"] == "^[A-Z]{2}\\-[0-9]{4}$"
    assert publication.topics.replication_factor == 3


def test_required_attributes_that_were_confirmed_are_in_force():
    publication = load_text("bikes", replace(BIKES, requires=True).text()).publication
    assert isinstance(publication, NgsiPublication)
    assert publication.quality.required_attributes == ("bikes", "status")


def test_a_name_of_the_source_cannot_add_a_line():
    text = replace(BIKES, types=("a\nname: other",), service_paths=()).text()
    assert 'types: ["a\\nname: other"]' in text


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_can_be_quoted(text):
    quoted = quote(text)
    assert quoted.isprintable()
    assert yaml_document.parse(f"key: {quoted}").value == {"key": text}


def test_a_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "bikes.yaml"
    write_file(path, "one", replaces=False)
    with pytest.raises(ConfigurationError, match="is there already"):
        write_file(path, "two", replaces=False)
    assert path.read_text() == "one"
    write_file(path, "two", replaces=True)
    assert path.read_text() == "two"
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        write_file(tmp_path / "none" / "bikes.yaml", "one", replaces=False)
