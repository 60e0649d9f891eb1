"""Data registrations: what a message of them is split into, and the key of each."""

from __future__ import annotations

from io import BytesIO

import pytest

from builders.registrations import agreement, as_json, interface, registration, response, submission, urn
from contexture.sources.sdmx import Selector, split
from contexture.sources.sdmx.rules.checks import check
from contexture.sources.sdmx.validation import SchemaValidator


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_each_registration_of_a_response_is_one_artefact_with_a_key_of_its_agreement_and_id(version):
    one, two = registration("exr-1", version=version), registration("exr-2", agency="ECB.STA", version=version)

    found = split(BytesIO(response(one, two, version=version)))
    first, second = list(found)

    assert (first.urn, second.urn) == (urn("exr-1"), urn("exr-2", "ECB.STA"))
    assert (first.kind, first.agency, first.id, first.version) == ("Registration", "ECB", "exr-1", "1.0")
    assert first.references == (agreement(),)
    assert first.content == one.encode()
    assert found.findings == ()


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
@pytest.mark.parametrize("message", [response, submission])
def test_the_message_around_one_is_a_response_that_its_schema_accepts(version, message):
    [found] = split(BytesIO(message(registration("exr-1", version=version), version=version)))

    [again] = split(BytesIO(found.message()))
    assert (again.urn, again.content, again.content_hash) == (found.urn, found.content, found.content_hash)
    assert b"QueryRegistrationResponse" in found.message()
    assert b"SubmitRegistrationsRequest" not in found.message()
    assert SchemaValidator().marked(found).findings == ()
    assert (
        found.media_type
        == f"application/vnd.sdmx.registry+xml;version={version if version == '2.1' else version + '.0'}"
    )


def test_a_response_with_one_registration_stays_as_it_is():
    message = response(registration("exr-1"))
    [found] = split(BytesIO(message))
    assert found.message() == message


@pytest.mark.parametrize("prefix", ["", "r:"])
def test_prefixes_may_be_declared_anywhere(prefix):
    declared = f'xmlns{":r" if prefix else ""}="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/registry"'
    # References have no namespace.
    one = registration("exr-1").replace("reg:", prefix).replace("<Ref ", '<Ref xmlns="" ')
    result = f'<{prefix}QueryResult {declared} timeSeriesMatch="false"><{prefix}DataResult>{one}</{prefix}DataResult>'
    message = (
        response()
        .decode()
        .replace("</mes:QueryRegistrationResponse>", f"{result}</{prefix}QueryResult></mes:QueryRegistrationResponse>")
    )
    [found] = split(BytesIO(message.encode()))
    assert (found.urn, SchemaValidator().marked(found).findings) == (urn("exr-1"), ())
    assert found.content_hash == next(split(BytesIO(response(registration("exr-1"))))).content_hash


def test_a_notification_holds_one_too():
    event = f"<reg:RegistrationEvent>{registration('exr-1')}</reg:RegistrationEvent>"
    [found] = split(BytesIO(interface(f"<mes:NotifyRegistryEvent>{event}</mes:NotifyRegistryEvent>")))
    assert found.urn == urn("exr-1")


def test_constraints_beside_a_registration_are_reported_and_in_no_record():
    constraint = '<reg:Constraint><Ref id="C" agencyID="ECB"/></reg:Constraint>'
    found = split(BytesIO(response(registration("exr-1") + constraint)))
    [only] = list(found)
    assert b"Constraint" not in only.message()
    assert [finding.code for finding in found.findings] == ["outside"]


@pytest.mark.parametrize("status", ["Warning", "Failure"])
def test_a_status_that_is_no_success_is_a_notice(status):
    found = split(BytesIO(response(status=f'<reg:StatusMessage status="{status}"/>')))
    assert list(found) == []
    assert [finding.message for finding in found.findings] == [f"the sender adds a StatusMessage {status}"]


def test_the_metadata_of_a_result_stay_metadata():
    result = f"<reg:MetadataResult>{registration('exr-1')}</reg:MetadataResult>"
    content = f'<reg:StatusMessage status="Success"/><reg:QueryResult timeSeriesMatch="true">{result}</reg:QueryResult>'
    message = interface(f"<mes:QueryRegistrationResponse>{content}</mes:QueryRegistrationResponse>")
    [found] = split(BytesIO(message))
    assert b"MetadataResult>" in found.message()
    assert SchemaValidator().marked(found).findings == ()


def test_a_urn_that_a_registration_declares_is_its_key():
    own = urn("exr-1", "SOMEONE")
    written = registration("exr-1").replace("<reg:Registration ", f'<reg:Registration urn="{own}" ')
    [found] = split(BytesIO(response(written)))
    assert (found.urn, found.declared_urn, found.agency, found.findings) == (own, own, "SOMEONE", ())


@pytest.mark.parametrize("other", ["not a urn", agreement()])
def test_what_is_declared_and_is_no_urn_of_a_registration_is_only_reported(other):
    written = registration("exr-1").replace("<reg:Registration ", f'<reg:Registration urn="{other}" ')
    [found] = split(BytesIO(response(written)))
    assert (found.urn, [finding.code for finding in found.findings]) == (urn("exr-1"), ["urn-differs"])


@pytest.mark.parametrize(
    "written",
    [registration("").replace(' id=""', ""), '<reg:Registration id="exr-1"><reg:Datasource/></reg:Registration>'],
)
def test_a_registration_without_id_or_agreement_has_no_key_and_is_refused(written):
    [found] = split(BytesIO(response(written)))
    assert found.urn is None
    assert "urn-missing" in [violation.rule for violation in check(found) if violation.severity == "error"]


def test_an_agreement_whose_names_make_no_urn_gives_no_key():
    [found] = split(BytesIO(response(registration("exr-1", agency="E (C)B"))))
    assert found.urn is None


def test_an_id_that_makes_no_urn_gives_no_key():
    [found] = split(BytesIO(response(registration("exr 1"))))
    assert found.urn is None
    assert [violation.message for violation in check(found) if violation.rule == "urn-missing"] == [
        "'Registration' has an agency or id with characters that no URN has"
    ]


def test_registrations_in_json_have_the_same_keys():
    [plain] = split(BytesIO(as_json("exr-1")), "application/vnd.sdmx.registry+json;version=2.0.0")
    [fusion] = split(BytesIO(as_json("exr-1", fusion=True)), "application/vnd.fusion.json")
    assert (plain.urn, fusion.urn) == (urn("exr-1"), urn("exr-1"))
    assert (plain.media_type, fusion.media_type) == (
        "application/vnd.sdmx.registry+json;version=2.0.0",
        "application/vnd.fusion.json",
    )
    assert [violation.rule for violation in check(plain)] == []


def test_a_selector_selects_them_by_the_agency_of_their_agreement():
    selector = Selector.parse("Registration=ECB:*(*)")
    assert selector.select([urn("a"), urn("b", "BIS"), agreement()]) == (urn("a"),)
    assert Selector.parse("*").matches(urn("a"))
