"""What a structure registry answers, as its clients read it: every question gets the same answer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import httpx

from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.registry.connect import open_registry
from contexture.sources.sdmx.registry.connection import Product, RegistryConnection
from contexture.sources.sdmx.registry.fusion import FusionRegistry
from contexture.sources.sdmx.registry.interface import StructureQuery
from contexture.sources.sdmx.registry.rest import SdmxRegistry
from contexture.sources.sdmx.registry.structures import StructurePaths
from contexture.sources.sdmx.registry.transport import StructureDownloads
from tools.fuzz.target import Target, request
from tools.fuzz.targets.answers import DATE, PATIENCE, answering, outcome
from tools.fuzz.targets.registry import FEED, FUSION, LOG, REGISTRATIONS, STRUCTURE, URN

_CONNECTION = RegistryConnection("http://registry:8080/FusionRegistry", timeout_seconds=5.0, reply_bytes=16 << 20)
_REGISTRATION = "urn:sdmx:org.sdmx.infomodel.registry.Registration=ECB:exr-1(1.0)"
_V2 = StructurePaths("/sdmx/v2", "v2")
_ML, _JSON = Format.SDMX_ML_3_0.media_type, Format.FUSION_JSON.media_type


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="contexture-fuzz-"))


def _transport(network: httpx.BaseTransport) -> StructureDownloads:
    return StructureDownloads(_CONNECTION, PATIENCE, network)


def _fusion(data: bytes) -> object:
    into = _folder() / "answer"
    with FusionRegistry(
        _CONNECTION, _transport(answering(data)), _V2, Product("12.4.2"), has_registrations=True
    ) as registry:
        return (
            outcome(registry.probe),
            outcome(registry.list_structures),
            outcome(lambda: registry.transactions(None)),
            outcome(lambda: registry.transactions(11)),
            outcome(registry.all_urns),
            outcome(lambda: registry.history(URN)),
            outcome(lambda: registry.read_one(URN, _JSON, into)),
            outcome(lambda: registry.read_one(_REGISTRATION, Format.SDMX_ML_2_1.media_type, into)),
        )


def _generic(data: bytes) -> object:
    into = _folder() / "answer"
    with SdmxRegistry(_CONNECTION, _transport(answering(data)), _V2) as registry:
        return (
            outcome(registry.probe),
            outcome(registry.list_structures),
            outcome(lambda: registry.unchanged_since("Thu, 01 Jan 2026 12:00:00 GMT")),
            outcome(lambda: registry.read(StructureQuery(), _ML, into)),
            outcome(lambda: registry.read_one(URN, _ML, into)),
        )


def _unknown(data: bytes) -> object:
    def opened() -> object:
        with open_registry(_CONNECTION, budget=PATIENCE, transport=answering(data)) as registry:
            return registry

    return outcome(opened)


def _fusion_inputs() -> Mapping[str, bytes]:
    as_json = {**DATE, "Content-Type": "application/json"}
    return {
        "structures": request({**DATE, "Content-Type": _JSON, "Last-Modified": DATE["Date"]}, FUSION, 200),
        "log": request(as_json, LOG, 200),
        "feed": request({**DATE, "Content-Type": "application/rss+xml"}, FEED, 200),
        "product": request(as_json, b'{"Version":"12.4.2"}', 200),
        "urns": request(as_json, b'["' + URN.encode() + b'"]', 200),
        "registrations": request({**DATE, "Content-Type": "application/xml"}, REGISTRATIONS, 200),
        "nothing": request(as_json, b"", 200),
        "later": request({**DATE, "Retry-After": "3"}, b"", 503),
    }


def _generic_inputs() -> Mapping[str, bytes]:
    as_ml = {**DATE, "Content-Type": _ML}
    error = b'<m:Error xmlns:m="http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message"><m:ErrorMessage code="100"/>'
    return {
        "structures": request({**as_ml, "Last-Modified": DATE["Date"]}, STRUCTURE, 200),
        "none": request(as_ml, error + b"</m:Error>", 404),
        "unchanged": request(as_ml, b"", 304),
        "elsewhere": request({**DATE, "Location": "http://169.254.169.254/"}, b"", 302),
    }


def _any_inputs() -> Mapping[str, bytes]:
    return {**_fusion_inputs(), "generic": _generic_inputs()["structures"]}


_WORDS = (
    b"Last-Modified: ",
    b"Retry-After: ",
    b"Content-Type: text/html",
    b"Content-Type: application/vnd.sdmx.structure+json;version=2.0.0",
    b"\n404\n",
    b"\n406\n",
    b"\n304\n",
    b"\n413\n",
    URN.encode(),
    b"(1.0)",
)

TARGETS = (
    Target("fmr-answers", "answers of a Fusion Metadata Registry", _fusion, _fusion_inputs, "request", _WORDS),
    Target("sdmx-answers", "answers of any other registry", _generic, _generic_inputs, "request", _WORDS),
    Target("unknown-registry", "responses that show which registry it is", _unknown, _any_inputs, "request", _WORDS),
)
