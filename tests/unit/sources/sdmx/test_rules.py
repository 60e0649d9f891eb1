"""Each rule that one structure can break, with its message."""

from __future__ import annotations

import json
import pickle
from io import BytesIO

import pytest

from builders import structures
from builders.registry_publication import registry_publication
from contexture.errors import ConfigurationError
from contexture.events.rules import Violation
from contexture.publications.quality import STRUCTURE_RULES
from contexture.sources.sdmx import Artefact, Selector, StructureMessageError, split
from contexture.sources.sdmx.rules.catalogue import RULES, StructureRuleOptions, severities
from contexture.sources.sdmx.rules.checks import check, check_alone, unreadable
from contexture.sources.sdmx.rules.consistency import is_final
from contexture.sources.sdmx.validation import SchemaValidator

WITHOUT_SCHEMA = StructureRuleOptions(severities=severities({"schema": "off"}))
FUSION = "application/vnd.fusion.json"
SENDER = '<mes:Sender id="X"/></mes:Header>'


def one(message: str, encoding: str = "utf-8", *, media_type: str | None = None) -> Artefact:
    [artefact] = split(BytesIO(message.encode(encoding)), media_type)
    return artefact


def codelist(attributes: str, items: str = "", version: str = "2.1") -> Artefact:
    content = f'<str:Codelist {attributes}><com:Name xml:lang="en">C</com:Name>{items}</str:Codelist>'
    message = structures.ml(version, ("Codelists", content))
    return one(message.replace("</mes:Header>", SENDER))


def found(artefact: Artefact, options: StructureRuleOptions = WITHOUT_SCHEMA) -> list[tuple[str, str, str]]:
    return [(each.rule, each.severity, each.message) for each in check(artefact, options)]


GOOD = 'id="CL_SEX" agencyID="SDMX" version="2.1"'
CODE = '<str:Code id="{}"><com:Name xml:lang="en">N</com:Name></str:Code>'


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_a_good_structure_breaks_no_rule(version: str) -> None:
    items = CODE.format("M") + CODE.format("F")
    assert found(codelist(GOOD.replace('"2.1"', '"2.1.0"' if version != "2.1" else '"2.1"'), items, version)) == []
    assert check(codelist(GOOD, items)) == []


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('id="CL SEX" agencyID="SDMX"', "the id 'CL SEX' has more than letters, digits and _ @ $ -"),
        ('id="CL.SEX" agencyID="SDMX"', "the id 'CL.SEX' has more than letters, digits and _ @ $ -"),
        (
            'id="CL_SEX" agencyID="SD/MX"',
            "the agency 'SD/MX' has more than letters, digits and _ @ $ - with dots between them",
        ),
        (
            'id="CL_SEX" agencyID="SDMX."',
            "the agency 'SDMX.' has more than letters, digits and _ @ $ - with dots between them",
        ),
        (
            'id="CL_SEX" agencyID="SDMX" version="1.0-draft"',
            "the version '1.0-draft' is none such as 1.0, 2.3.1 or 2.3.1-draft",
        ),
        ('id="CL_SEX" agencyID="SDMX" version="*"', "the version '*' is none such as 1.0, 2.3.1 or 2.3.1-draft"),
    ],
)
def test_names_that_sdmx_does_not_allow_are_errors(attributes: str, message: str) -> None:
    assert found(codelist(attributes)) == [("identity", "error", message)]


@pytest.mark.parametrize(
    "attributes",
    [
        'id="CL-1_@$" agencyID="4F0.BIS-X.a" version="1"',
        'id="1" agencyID="A" version="2.3.1-draft.7"',
        'id="A" agencyID="A"',
    ],
)
def test_names_that_sdmx_allows_are_none(attributes: str) -> None:
    assert found(codelist(attributes)) == []


def test_sdmx_ml_2_0_has_any_text_for_a_version() -> None:
    content = structures.CODELIST_2_0.replace('version="1.0"', 'version="1.0-draft"')
    assert found(one(structures.ml("2.0", ("CodeLists", content)))) == []
    content = structures.CODELIST_2_0.replace('version="1.0"', 'version="1 (draft)"')
    assert [rule for rule, _, _ in found(one(structures.ml("2.0", ("CodeLists", content))))] == ["identity"]


def test_a_structure_without_a_urn_is_an_error_that_says_what_is_missing() -> None:
    assert found(codelist('id="CL_SEX"')) == [
        ("urn-missing", "error", "'Codelist' has no agency, so that it has no URN")
    ]
    assert found(codelist("")) == [
        ("urn-missing", "error", "'Codelist' has no agency and no id, so that it has no URN")
    ]


def test_a_concept_outside_of_a_scheme_has_no_urn() -> None:
    concept = '<str:Concept id="FREQ" agencyID="BIS"><str:Name xml:lang="en">F</str:Name></str:Concept>'
    assert found(one(structures.ml("2.0", ("Concepts", concept)))) == [
        ("urn-missing", "error", "'Concept' 'FREQ' is not maintainable, so that it has no URN")
    ]


def test_a_structure_that_calls_itself_otherwise_is_a_warning() -> None:
    declared = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.0)"
    assert found(codelist(f'{GOOD} urn="{declared}"')) == [
        ("urn-agreement", "warning", f"the structure declares itself as '{declared}'")
    ]


def test_a_kind_that_the_model_does_not_know_is_a_warning_and_needs_a_urn_of_its_own() -> None:
    template = {"id": "T", "agencyId": "BIS", "urn": "urn:sdmx:com.x.model.report.ReportingTemplate=BIS:T(1.0)"}
    assert found(one(json.dumps({"ReportingTemplate": [template]}), media_type=FUSION)) == [
        ("unknown-kind", "warning", "SDMX's information model has no kind 'ReportingTemplate'")
    ]
    assert found(one(json.dumps({"ReportingTemplate": [{**template, "urn": "T"}]}), media_type=FUSION)) == [
        ("unknown-kind", "warning", "SDMX's information model has no kind 'ReportingTemplate'"),
        (
            "urn-missing",
            "error",
            "'ReportingTemplate' 'T' is of an unknown kind and declares no URN",
        ),
    ]


def test_a_structure_that_its_schema_refuses_is_a_warning() -> None:
    wrong = codelist(GOOD, CODE.format("not an id"))
    [(rule, severity, message)] = found(wrong, StructureRuleOptions())
    assert (rule, severity) == ("schema", "warning")
    assert message.startswith("line 2: Element 'Code', attribute 'id'")
    assert message.endswith(" (and 1 more)")


@pytest.mark.parametrize("prefixes", [("mes", "str", "com"), ("", "str", "com")])
def test_no_structure_is_at_fault_for_the_header_of_its_message(prefixes: tuple[str, str, str]) -> None:
    # A reference would stand in the default namespace, if there is one.
    content = structures.CODELIST_2_1.replace('<str:Parent><Ref id="M"/></str:Parent>', "")
    good = one(structures.ml("2.1", ("Codelists", content), prefixes=prefixes))
    assert [finding.code for finding in SchemaValidator().marked(good).findings] == ["invalid"]
    assert check(good) == []
    bad = content.replace('<str:Code id="M">', '<str:Code id="not an id">')
    assert [each.rule for each in check(one(structures.ml("2.1", ("Codelists", bad), prefixes=prefixes)))] == ["schema"]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_nor_is_one_in_json(version: str) -> None:
    good = one(structures.sdmx_json(version, {"codelists": [structures.CODELIST_JSON]}))
    assert [finding.code for finding in SchemaValidator().marked(good).findings] == ["invalid"]
    assert check(good) == []


def test_what_is_too_large_for_its_schema_is_let_pass() -> None:
    wrong = codelist(GOOD, CODE.format("not an id"))
    assert check(wrong, StructureRuleOptions(largest_schema_bytes=wrong.size - 1)) == []
    assert check(wrong, StructureRuleOptions(largest_schema_bytes=wrong.size)) != []


@pytest.mark.parametrize(("rules", "is_reported"), [({}, True), ({"schema": "off"}, False)])
def test_json_is_validated_unless_a_publication_turns_the_rule_off(rules: dict[str, str], is_reported: bool) -> None:
    wrong = one(structures.sdmx_json("2.0", {"codelists": [{**structures.CODELIST_JSON, "codes": 7}]}))
    options = StructureRuleOptions.for_publication(registry_publication(("*=ECB:*(*)",), rules=rules))
    assert options.selectors == (Selector.parse("*=ECB:*(*)"),)
    assert ("schema" in [violation.rule for violation in check(wrong, options)]) is is_reported


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["M", "F", "M"], "'M'"),
        (["M", "F", "M", "M", "F"], "'M', 'F'"),
        (["M", "F", "T", "T", "M", "F"], "'T', 'M' and 1 more"),
    ],
)
def test_items_of_the_same_id_are_a_warning(ids: list[str], names: str) -> None:
    artefact = codelist(GOOD, "".join(map(CODE.format, ids)))
    message = f"more than one item in one place has the id {names}"
    assert found(artefact) == [("duplicate-item", "warning", message)]
    assert found(artefact, StructureRuleOptions(severities=severities({"schema": "off"}), largest_items_bytes=9)) == []


def test_ids_are_compared_within_one_place_and_among_items_of_one_kind() -> None:
    categories = (
        '<str:CategoryScheme id="CS" agencyID="BIS">'
        '<com:Annotations><com:Annotation id="A"/><com:Annotation id="A"/></com:Annotations>'
        '<str:Category id="A"><str:Category id="A"/><str:Category id="B"/></str:Category>'
        '<str:Category id="B"><str:Category id="A"/></str:Category></str:CategoryScheme>'
    )
    assert found(one(structures.ml("2.1", ("CategorySchemes", categories)))) == []
    twice = categories.replace('<str:Category id="B"/>', '<str:Category id="A"/>')
    assert [rule for rule, _, _ in found(one(structures.ml("2.1", ("CategorySchemes", twice))))] == ["duplicate-item"]


def test_codes_of_2_0_are_distinguished_by_their_values() -> None:
    code = '<str:Code value="A"><str:Description xml:lang="en">Annual</str:Description></str:Code>'
    twice = structures.CODELIST_2_0.replace(code, code * 2)
    assert found(one(structures.ml("2.0", ("CodeLists", twice)))) == [
        ("duplicate-item", "warning", "more than one item in one place has the id 'A'")
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_items_are_compared_in_any_encoding(encoding: str) -> None:
    twice = structures.CODELIST_2_1.replace('<str:Code id="F">', '<str:Code id="M">')
    message = structures.ml("2.1", ("Codelists", twice), prolog="")
    assert [rule for rule, _, _ in found(one(message, encoding))] == ["duplicate-item"]


def test_items_in_json_are_compared_without_what_is_no_item() -> None:
    said = [{"id": "A"}, {"id": "A"}]
    good = {**structures.CODELIST_JSON, "annotations": said}
    assert found(one(structures.sdmx_json("2.0", {"codelists": [good]}))) == []
    nested = {"id": "M", "codes": [{"id": "X"}, {"id": "X"}]}
    wrong = {**good, "codes": [nested, {"id": "F"}, {"id": "M"}]}
    assert found(one(structures.sdmx_json("2.0", {"codelists": [wrong]}))) == [
        ("duplicate-item", "warning", "more than one item in one place has the id 'M', 'X'")
    ]


@pytest.mark.parametrize("literal", ["1E400", "123456789012345678901234567890", "-0.0"])
def test_items_are_compared_whatever_numbers_stand_beside_them(literal: str) -> None:
    content = {**structures.CODELIST_JSON, "codes": [{"id": "M", "value": "N"}, {"id": "M"}]}
    message = structures.sdmx_json("2.0", {"codelists": [content]}).replace('"N"', literal)
    assert [rule for rule, _, _ in found(one(message))] == ["duplicate-item"]


def test_a_constraint_has_no_items_of_its_own() -> None:
    values = '<com:KeyValue id="FREQ"><com:Value>A</com:Value></com:KeyValue>' * 2
    region = f"<str:CubeRegion>{values}</str:CubeRegion>"
    constraint = f'<str:ContentConstraint id="C" agencyID="BIS">{region}</str:ContentConstraint>'
    assert found(one(structures.ml("2.1", ("Constraints", constraint)))) == []


def test_a_publication_says_how_grave_a_violation_is() -> None:
    options = StructureRuleOptions(
        severities=severities({"identity": "warning", "urn-agreement": "off", "schema": "off"})
    )
    assert [(rule, severity) for rule, severity, _ in found(codelist('id="A B" agencyID="X" urn="U"'), options)] == [
        ("identity", "warning")
    ]
    assert [severity for _, severity, _ in found(codelist(""), options)] == ["error"]


def test_a_message_shows_little_of_the_data() -> None:
    [(_, _, message)] = found(codelist(f'id="{"x y" * 100}" agencyID="SDMX"'))
    assert len(message) < 120


def test_a_body_holds_one_structure() -> None:
    artefact = codelist(GOOD)
    assert check_alone([artefact]) == []
    assert check_alone([]) == [Violation("unreadable", "error", "the message holds no structure")]
    assert check_alone([artefact, artefact]) == [
        Violation("one-structure", "error", "the body holds more than one structure")
    ]


def test_what_can_not_be_taken_apart_is_an_error() -> None:
    with pytest.raises(StructureMessageError) as caught:
        list(split(BytesIO(b"<html><br></html>")))
    [violation] = unreadable(caught.value)
    assert (violation.rule, violation.severity) == ("unreadable", "error")
    assert violation.message == caught.value.message


def test_a_validator_that_can_not_read_a_structure_holds_it_not_back() -> None:
    deep = '{"a":' * 150 + "1" + "}" * 150
    content = json.dumps({**structures.CODELIST_JSON, "more": "DEEP"}).replace('"DEEP"', deep)
    message = structures.sdmx_json("2.0", {"codelists": ["C"]}).replace('"C"', content)
    [artefact] = split(BytesIO(message.encode()))
    assert "unreadable" not in [violation.rule for violation in check(artefact)]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (GOOD, False),
        (f'{GOOD} isFinal="true"', True),
        (f"{GOOD} isFinal = '1'", True),
        (f'{GOOD} isFinal="false"', False),
        ('id="CL_SEX" agencyID="SDMX" version="2.1.0"', True),
        ('id="CL_SEX" agencyID="SDMX" version="2.1.0-draft"', False),
        ('id="CL_SEX" agencyID="SDMX" version="two"', False),
    ],
)
def test_a_structure_is_final_by_its_version_or_by_its_own_word(attributes: str, expected: bool) -> None:
    assert is_final(codelist(attributes)) is expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_only_the_structure_itself_says_that_it_is_final(encoding: str) -> None:
    said = structures.CODELIST_2_1.replace('<str:Code id="M">', '<str:Code id="M" isFinal="true">')
    assert not is_final(one(structures.ml("2.1", ("Codelists", said), prolog=""), encoding))
    said = structures.CODELIST_2_1.replace('version="2.1"', 'version="2.1" isFinal="true"')
    assert is_final(one(structures.ml("2.1", ("Codelists", said), prolog=""), encoding))


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False), ('"isFinal": true', False)])
def test_in_json_a_member_says_it(value: object, expected: bool) -> None:
    content = {**structures.CODELIST_FUSION, "isFinal": value}
    assert is_final(one(json.dumps({"Codelist": [content]}))) is expected


def test_the_list_of_rules_is_complete() -> None:
    assert tuple(rule.name for rule in RULES) == STRUCTURE_RULES
    assert all(rule.description and not rule.description.endswith(".") for rule in RULES)
    with pytest.raises(ConfigurationError, match=r"no such rule: version_order.*use version-order"):
        severities({"version_order": "off"})


def test_options_travel_to_other_processes() -> None:
    options = StructureRuleOptions(severities=severities({"schema": "off"}))
    assert pickle.loads(pickle.dumps(options)) == options
