"""A registry asked without HTTP: what it answers is decided below the server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from builders import structures
from contexture.sources.sdmx import Artefact, split
from contexture_sandbox.http_server import Answer
from contexture_sandbox.registry import api
from contexture_sandbox.registry.model import Action, Face, Transaction
from contexture_sandbox.registry.registry import Call, Registry
from contexture_sandbox.registry.submissions import Submission, submit

START = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
START_MS = 1_793_534_400_000
SEX = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"
EXR = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=ECB:EXR(1.0)"
ECB_EXR1 = "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0)"
STRUCTURE_OF_EXR = '<str:DataStructure id="ECB_EXR1" agencyID="ECB" version="2.0"/>'


def codelist(identifier: str = "CL_A", version: str = "1.0", *codes: str, agency: str = "X") -> str:
    """A code list of SDMX-ML 2.1."""
    items = "".join(f'<str:Code id="{code}"/>' for code in codes)
    return f'<str:Codelist id="{identifier}" agencyID="{agency}" version="{version}">{items}</str:Codelist>'


def codelists(*each: str) -> bytes:
    """A message of code lists."""
    return structures.ml("2.1", ("Codelists", "".join(each))).encode()


def urn(identifier: str = "CL_A", version: str = "1.0", agency: str = "X") -> str:
    """Of a code list."""
    return f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist={agency}:{identifier}({version})"


SEX_AND_FLOW = structures.ml(
    "2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1)
).encode()


class Client:
    """Queries a registry whose clock always shows `START`."""

    def __init__(self, face: Face = "fmr", version: str = "12.4.2") -> None:
        self.registry = Registry(face, version=version)
        self.registry.store.clock.freeze(START)

    def submit(self, *messages: bytes, action: Action = "Replace") -> Transaction:
        return submit(self.registry.store, Submission(messages, action))

    def later(self, seconds: float) -> None:
        self.registry.store.clock.advance(seconds)

    def ask(
        self,
        url: str,
        *,
        method: str = "GET",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        empty: bool = False,
        half: bool = False,
    ) -> Answer:
        parts = urlsplit(url)
        segments = tuple(parts.path.strip("/").split("/"))
        parameters = dict(parse_qsl(parts.query))
        call = Call(method, segments, parameters, headers or {}, body, "http://registry", empty, half)
        return api.answer(self.registry, call)

    def artefacts(self, url: str, **headers: str) -> list[Artefact]:
        answer = self.ask(url, headers=headers)
        assert answer.status == 200, answer.body
        return list(split(BytesIO(answer.body), answer.headers["content-type"]))

    def urns(self, url: str, **headers: str) -> list[str | None]:
        return [artefact.urn for artefact in self.artefacts(url, **headers)]

    def json(self, url: str) -> Any:
        answer = self.ask(url)
        assert answer.status == 200, answer.body
        return orjson.loads(answer.body)

    def post(self, body: bytes, action: str, user: str = "root", password: str = "password") -> Answer:
        given = b64encode(f"{user}:{password}".encode()).decode()
        headers = {"action": action, "authorization": f"Basic {given}", "content-type": "application/xml"}
        return self.ask("/ws/secure/sdmxapi/rest", method="POST", body=body, headers=headers)
