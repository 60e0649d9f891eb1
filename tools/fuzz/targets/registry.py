"""What a structure registry answers: structure messages in all formats, its log, its feed, packed bodies, refusals."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import BytesIO

import httpx

from contexture.errors import ContextureError
from contexture.events.rules import Violation
from contexture.sources.http.content_encoding import decode_content
from contexture.sources.http.errors import retry_after_seconds
from contexture.sources.sdmx import Artefact, StructureMessageError, split
from contexture.sources.sdmx.registry.connection import product_in
from contexture.sources.sdmx.registry.log import parse_feed, rows_in, urns_in
from contexture.sources.sdmx.registry.transport import DownloadedFile, is_error_message
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions
from contexture.sources.sdmx.rules.checks import check
from contexture.sources.sdmx.transcoding.transcoder import TARGETS as CONVERSIONS
from contexture.sources.sdmx.transcoding.transcoder import transcode
from tools.fuzz.inputs import with_samples
from tools.fuzz.target import Target, request, taken_apart

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas"
_NAMESPACES = {"m": "message", "s": "structure", "c": "common"}
_CODE_LIST = (
    '<s:Codelist id="CL_SEX" agencyID="SDMX" version="2.1" '
    'urn="urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"><c:Name xml:lang="en">Sex</c:Name>'
    '<!-- two --><s:Code id="M"><c:Name xml:lang="en">Male &amp; more</c:Name></s:Code><s:Code id="F"/></s:Codelist>'
)
_OPTIONS = StructureRuleOptions()


def _namespaces(version: str) -> str:
    return " ".join(f'xmlns:{name}="{_SCHEMAS}/{version}/{part}"' for name, part in _NAMESPACES.items())


def _ml(version: str, encoding: str = "UTF-8") -> bytes:
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<m:Structure {_namespaces(version)}><m:Header><m:ID>M1</m:ID>'
        "<m:Prepared>2026-01-01T00:00:00</m:Prepared></m:Header><m:Structures><s:Codelists>"
        f"{_CODE_LIST}</s:Codelists></m:Structures></m:Structure>"
    )
    return text.encode(encoding)


STRUCTURE = _ml("v3_0")
REGISTRATIONS = (
    f'<m:RegistryInterface xmlns:m="{_SCHEMAS}/v2_1/message" xmlns:r="{_SCHEMAS}/v2_1/registry"><m:Header/>'
    '<m:QueryRegistrationResponse><r:StatusMessage status="Success"/><r:QueryResult timeSeriesMatch="false">'
    '<r:DataResult><r:Registration id="exr-1"><r:ProvisionAgreement><Ref id="PA" agencyID="ECB"/>'
    "</r:ProvisionAgreement><r:Datasource/></r:Registration></r:DataResult></r:QueryResult>"
    "</m:QueryRegistrationResponse></m:RegistryInterface>"
).encode()
_JSON = (
    b'{"meta":{"schema":"https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/structure-message/tools/schemas/'
    b'2.0.0/sdmx-json-structure-schema.json","id":"M1","test":false,"prepared":"2026-01-01T00:00:00Z",'
    b'"sender":{"id":"SDMX"}},"data":{"codelists":[{"id":"CL_SEX","agencyID":"SDMX","version":"1.0.0","name":"Sex",'
    b'"links":[{"rel":"self","urn":"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(1.0.0)"}],'
    b'"codes":[{"id":"M","name":"Male"},{"id":"F","parent":"M","value":1.50}]}]}}'
)
_LATE = b'{"data":{"codelists":[{"id":"A","agencyID":"B"}]},"meta":{"id":"M"},"$schema":"x"}'
FUSION = (
    b'{"meta":{"id":"M1"},"Codelist":[{"id":"CL_SEX","agencyId":"SDMX","version":"1.0",'
    b'"urn":"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(1.0)","items":[{"id":"M"}]}]}'
)
URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_A(1.0)"
_URN = URN.encode()
LOG = b'[{"ID":12,"Date":1767225600000,"Action":"Append","Type":"Structures"},{"id":"13","date":"1"}]'
FEED = (
    b"<rss><channel><item><title>Transaction 12: Structures</title><transactionsAdded>" + _URN + b";" + _URN + b"2"
    b"</transactionsAdded><transactionsModified>" + _URN + b"</transactionsModified><transactionsDeleted/></item>"
    b"</channel></rss>"
)
_ERROR = f'<m:Error xmlns:m="{_SCHEMAS}/v2_1/message"><m:ErrorMessage code="100"/></m:Error>'.encode()


def _artefacts(media_type: str | None) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        found, count = set[object](), 0
        message = split(BytesIO(data), media_type)
        for artefact in message:
            count += 1
            found.update(violation.rule for violation in _judged(artefact))
            found.update(finding.code for finding in artefact.findings)
        return message.format, min(count, 2), frozenset(found), frozenset(each.code for each in message.findings)

    return parse


def _judged(artefact: Artefact) -> list[Violation]:
    # What is sent is the message around it, which has to be one again.
    (again,) = split(BytesIO(artefact.message()), artefact.media_type)
    if again.content_hash != artefact.content_hash:
        raise AssertionError("the message of an artefact says something else")
    return [*check(artefact, _OPTIONS)]


def _conversion(data: bytes) -> object:
    found = set[object]()
    for number, artefact in enumerate(split(BytesIO(data))):
        for target in CONVERSIONS:
            try:
                found.add((target, transcode(artefact, target, NOON).artefact.kind))
            except ContextureError as error:
                if isinstance(error, StructureMessageError):
                    raise
                found.add((target, type(error).__name__))
        if number >= 1:
            break
    return frozenset(found)


def _log(body: bytes) -> object:
    fetched = DownloadedFile(200, httpx.Headers({"content-type": "application/json"}), len(body), NOON, NOON)
    product_in(body)
    ends: list[object] = []
    for read in (rows_in, urns_in):
        try:
            ends.append(min(len(read(body, fetched)), 2))
        except ContextureError as error:
            ends.append(type(error).__name__)
    return tuple(ends)


def _feed(body: bytes) -> object:
    return min(len(parse_feed(body)), 2)


def _packed(data: bytes) -> object:
    others, headers, body = taken_apart(data)
    pieces = (body[at : at + 700] for at in range(0, len(body), 700))
    # The reader counts, and stops at a limit.
    total = 0
    for piece in decode_content(pieces, headers.get("Content-Encoding", "gzip"), "the registry"):
        total += len(piece)
        if total > 64 << 20:
            return "stopped"
    return len(others), total > 0


def _refusal(data: bytes) -> object:
    _, headers, body = taken_apart(data)
    seconds = retry_after_seconds(headers.get("Retry-After", ""))
    return is_error_message(headers.get("Content-Type", ""), body[: 1 << 16]), seconds > 0


def _ml_inputs() -> Mapping[str, bytes]:
    own = {version: _ml(version) for version in ("v2_1", "v3_0", "v3_1")}
    own |= {encoding: _ml("v2_1", encoding) for encoding in ("utf-16", "iso-8859-1")}
    own["registrations"] = REGISTRATIONS
    return with_samples(own, "sdmx/ml*/*.xml")


def _json_inputs() -> Mapping[str, bytes]:
    own = {"2.0": _JSON, "fusion": FUSION, "late": _LATE}
    return with_samples(own, "sdmx/json*/*.json", "sdmx/fusion/*.json")


def _small_inputs() -> Mapping[str, bytes]:
    return {"ml": _ml("v2_1"), "json": _JSON, "ml3": _ml("v3_0")}


def _log_inputs() -> Mapping[str, bytes]:
    return {
        "rows": LOG,
        "urns": b'["' + _URN + b'",{"URN":"' + _URN + b'"}]',
        "product": b'{"Version":"12.4.2","ReleaseDate":"2026-09-19"}',
    }


def _packed_inputs() -> Mapping[str, bytes]:
    packed, large = gzip.compress(FUSION, mtime=0), gzip.compress(b" " * (128 << 20), 9, mtime=0)
    gzipped = {"Content-Encoding": "gzip"}
    return {
        "one": request(gzipped, packed),
        "two": request(gzipped, packed + packed),
        "bomb": request(gzipped, large),
        "plain": request({"Content-Encoding": "identity"}, FUSION),
    }


def _refusal_inputs() -> Mapping[str, bytes]:
    xml = {"Content-Type": "application/vnd.sdmx.error+xml", "Retry-After": "5"}
    later = "Thu, 01 Jan 2026 12:00:03 GMT"
    return {
        "xml": request(xml, _ERROR),
        "plain": request({"Content-Type": "text/xml", "Retry-After": later}, _ERROR + b"\n<Error >\n"),
        "json": request({"Content-Type": "application/json"}, b'{"errors":[{"code":100}]}'),
    }


_XML_WORDS = (
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<?xml version='1.0' encoding='",
    b"idna",
    b"punycode",
    b"utf-7",
    b"unicode_escape",
    b"cp037",
    b"hz",
    b"&#0;",
    b"&a;",
    b"isExternalReference='true'",
    b"<Ref id='A' agencyID='B' class='Codelist'/>",
    _URN,
)
_JSON_WORDS = (b"links", b"urn", b"agencyID", b"version", b"$schema", b"meta", b"data", b"errors", b"sdmx-json", _URN)
_RSS_WORDS = (b"<item>", b"</item>", b"<title>", b"Added", b";", _URN, b"Transaction 1", b"<!DOCTYPE rss>")
_PAST = b"Retry-After: Mon, 01 Jan 0001 00:00:00 +2300"
_DATE_WORDS = (_PAST, b"Thu, 01 Jan 2026 12:00:00 +99999999999999", b"<Error>", b"<a:Error ", b'"errors" : [')

TARGETS = (
    Target("sdmx-ml", "SDMX-ML of all versions", _artefacts(None), _ml_inputs, "xml", _XML_WORDS),
    Target("sdmx-json", "SDMX-JSON and Fusion-JSON", _artefacts(None), _json_inputs, "json", _JSON_WORDS),
    Target("sdmx-conversion", "structures that are converted", _conversion, _small_inputs, "xml", _XML_WORDS),
    Target("registry-log", "a registry's log, lists and product", _log, _log_inputs, "json", (b"date", b"id", b"urn")),
    Target("registry-feed", "a registry's feed (RSS)", _feed, lambda: {"feed": FEED}, "xml", _RSS_WORDS),
    Target("packed", "packed answers", _packed, _packed_inputs, "bytes", (b"\x1f\x8b\x08", b"deflate", b"gzip")),
    Target("refusals", "refusals of a registry", _refusal, _refusal_inputs, "request", _DATE_WORDS),
)
