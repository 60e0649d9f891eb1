"""A publication that reads a registry: what it needs not say, and what it can't mean."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from builders.structure_publications import structure_settings, structures
from contexture.publications import fingerprint
from contexture.publications.loading import validate
from contexture.publications.problems import ModelProblemsError
from contexture.storage.orders import StageOrder

SDMX_ML_2_1 = "application/vnd.sdmx.structure+xml;version=2.1"


def refusal(**sections: Any) -> str:
    publication, findings = validate(structure_settings(**sections))
    assert publication is None
    return str(ModelProblemsError(findings))


def test_a_name_a_source_and_topics_are_enough():
    publication = structures(source={"select": "Codelist=ECB:*(*)"}, topics={"topics": "FOO,BAR"})
    assert publication.topics.naming == "fixed"
    assert publication.topics.topics == ("FOO", "BAR")
    assert publication.message.format == "sdmx"
    assert publication.publish.shards == 1
    assert publication.source.media_type == SDMX_ML_2_1
    assert publication.source.select == ("Codelist=ECB:*(*)",)


def test_routes_alone_are_enough_too():
    publication = structures(topics={"routes": [{"select": "*", "topics": "structures-{agency}"}]})
    assert publication.topics.routes[0].topics == ("structures-{agency}",)


def test_what_the_file_lacks_counts_as_a_default():
    publication = structures(publish={"connection": "other"})
    assert "naming" not in publication.topics.model_fields_set
    assert "media_type" not in publication.source.model_fields_set
    assert publication.publish.model_fields_set == {"connection"}
    assert "format" not in publication.message.model_fields_set


def test_defaults_change_no_fingerprint_when_they_are_written():
    written = structures(
        source={"media_type": SDMX_ML_2_1},
        topics={"naming": "fixed", "topics": ["structures"]},
        message={"format": "sdmx", "key": "identity"},
        publish={"shards": 1},
    )
    assert fingerprint(written) == fingerprint(structures())


@pytest.mark.parametrize(
    "sections",
    [
        {"source": {"select": "Codelist=ECB:*(*)"}},
        {"source": {"media_type": "application/vnd.fusion.json"}},
        {"source": {"detect_deletions": False}},
        {"topics": {"topics": ["other"]}},
        {"topics": {"topics": ["structures"], "routes": [{"select": "*", "topics": ["all"]}]}},
        {"topics": {"topics": ["structures"], "keep": "history"}},
    ],
)
def test_what_changes_records_changes_the_fingerprint(sections):
    assert fingerprint(structures(**sections)) != fingerprint(structures())


def test_it_comes_back_from_an_order_as_it_was():
    publication = structures(topics={"routes": [{"select": "*", "topics": ["a", "b-{class}"]}]})
    order = StageOrder(
        publication=publication, fingerprint="f", home="/home", run="r", mode="full", sequence=1
    ).to_json()
    read = StageOrder.model_validate_json(order).publication
    assert read == publication
    assert fingerprint(read) == fingerprint(publication)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"publish": {"shards": 2}}, "`shards: 2`: a registry's transactions have one order"),
        ({"message": {"key": "none"}}, "'none' is not a value of `key` (expected one of: identity)"),
        ({"message": {"key": "topic"}}, "'topic' is not a value of `key` (expected one of: identity)"),
        ({"message": {"format": "ngsiv2"}}, "`format: ngsiv2` needs `kind: ngsi`"),
        ({"message": {"media_type": SDMX_ML_2_1}}, "did you mean `source.media_type`?"),
        ({"topics": {"naming": "cygnus"}}, "`naming: cygnus` needs `kind: ngsi`"),
        ({"topics": {"naming": "injective"}}, "`naming: injective` needs `kind: ngsi`"),
        ({"topics": {}}, "topics: no topic is set for the structures"),
        ({"topics": {"topics": ["A"], "data_model": "dm-by-service"}}, "`data_model` needs `kind: ngsi`"),
        ({"topics": {"topics": ["A"], "collision": "quarantine"}}, "`collision` needs `kind: ngsi`"),
        ({"topics": {"topics": ["A"], "enable_grouping": True, "grouping_rules": "a"}}, "`grouping_rules` needs"),
        ({"batches": {"batch_size": 2}}, "`batch_size` needs `kind: ngsi`"),
        ({"batches": {"batch_timeout": 2}}, "`batch_timeout` needs `kind: ngsi`"),
        ({"publish": {"transaction_records": 2}}, "`transaction_records` needs `kind: ngsi` or `kind: operations`"),
        ({"publish": {"on_failure": "dead-letter"}}, "would leave holes in a registry's transactions"),
        ({"quality": {"required_attributes": ["speed"]}}, "`required_attributes` needs `kind: ngsi`"),
        ({"quality": {"models": {"car": "car.json"}}}, "`models` needs `kind: ngsi`"),
        ({"source": {"mode": "notifications"}}, "`mode: notifications` needs `kind: ngsi`"),
        ({"source": {"types": ["car"]}}, "`types` needs `kind: ngsi`"),
        ({"source": {"service": "city"}}, "`service` needs `kind: ngsi`"),
        ({"source": {"page_size": 10}}, "`page_size` needs `kind: ngsi`"),
        ({"source": {"overlap_seconds": 10}}, "`overlap_seconds` needs `kind: ngsi`"),
        ({"source": {"suppress_unchanged": False}}, "`suppress_unchanged` needs `kind: ngsi`"),
        ({"source": {"flavour": "orion"}}, "`flavour: orion` needs `kind: ngsi`"),
    ],
)
def test_what_a_registry_excludes_is_refused(sections, expected):
    assert expected in refusal(**sections)


@pytest.mark.parametrize(
    "media_type",
    [
        "application/vnd.sdmx.structure+xml;version=3.0.0",
        "application/vnd.sdmx.structure+json; version=2.0.0",
        'application/vnd.sdmx.structure+xml;version="2.1"',
        "application/vnd.fusion.json",
        "application/vnd.xlsx",
    ],
)
def test_any_media_type_may_be_asked_for(media_type):
    assert structures(source={"media_type": media_type}).source.media_type == media_type


@pytest.mark.parametrize("media_type", ["xml", "SDMX-ML 2.1", "application/xml\r\nX: y", "a/b;version", "a/b, c/d", ""])
def test_what_is_no_media_type_is_refused(media_type):
    with pytest.raises(ValidationError):
        structures(source={"media_type": media_type})


@pytest.mark.parametrize(
    "sections",
    [
        {"resync": {"on_startup": "none"}},
        {"resync": {"on_startup": "full", "on_config_change": "none"}},
        {"source": {"flavour": "fmr", "mode": "full"}},
        {"source": {"shrink_limit": {"count": 3}}},
        {"topics": {"topics": ["A"], "partitions": 3, "keep": "history", "config": {"max.message.bytes": 9}}},
        {"batches": {"batch_ttl": -1, "batch_retry_intervals": [1]}},
        {"quality": {"minimum_entities": 0}},
    ],
)
def test_what_has_a_meaning_for_structures_is_accepted(sections):
    structures(**sections)


def test_structures_are_converted_into_forms_that_can_be_written_without_a_registry():
    assert structures(message={"allow_lossy": True}).message.allow_lossy
    assert "nothing can be converted into application/vnd.fusion.json" in refusal(
        source={"media_type": "application/vnd.fusion.json"}, message={"allow_lossy": True}
    )
