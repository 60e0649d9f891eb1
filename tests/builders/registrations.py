"""Data registrations of every format, as a registry responds or as they are submitted."""

from __future__ import annotations

import json

from builders.structures import NEW

HEAD = (
    "<mes:Header><mes:ID>R1</mes:ID><mes:Test>false</mes:Test><mes:Prepared>2026-11-01T12:00:00Z</mes:Prepared>"
    '<mes:Sender id="X"/><mes:Receiver id="Y"/></mes:Header>'
)
SUCCESS = '<reg:StatusMessage status="Success"/>'


def urn(identifier: str, agency: str = "ECB") -> str:
    """Of a registration, by the agency of its agreement."""
    return f"urn:sdmx:org.sdmx.infomodel.registry.Registration={agency}:{identifier}(1.0)"


def agreement(agency: str = "ECB", identifier: str = "PA_EXR") -> str:
    """The URN of a provision agreement."""
    return f"urn:sdmx:org.sdmx.infomodel.registry.ProvisionAgreement={agency}:{identifier}(1.0)"


def registration(
    identifier: str, source: str = "https://example.org/exr.xml", *, agency: str = "ECB", version: str = "2.1"
) -> str:
    """The element of a registration of data at this address."""
    reference = agreement(agency)
    if version == "2.1":
        reference = (
            f'<Ref id="PA_EXR" agencyID="{agency}" version="1.0" package="registry" class="ProvisionAgreement"/>'
        )
    return (
        f'<reg:Registration id="{identifier}" lastUpdated="2026-11-01T11:00:00Z">'
        f"<reg:ProvisionAgreement>{reference}</reg:ProvisionAgreement>"
        f"<reg:Datasource><reg:SimpleDataSource>{source}</reg:SimpleDataSource></reg:Datasource></reg:Registration>"
    )


def interface(content: str, version: str = "2.1") -> bytes:
    """A registry interface message with this content after its header."""
    schemas = f"http://www.sdmx.org/resources/sdmxml/schemas/{NEW[version]}"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:RegistryInterface xmlns:mes="{schemas}/message" '
        f'xmlns:reg="{schemas}/registry" xmlns:com="{schemas}/common">{HEAD}{content}</mes:RegistryInterface>'
    ).encode()


def response(*registrations: str, version: str = "2.1", status: str = SUCCESS) -> bytes:
    """A response to a query for registrations."""
    results = "".join(
        f'<reg:QueryResult timeSeriesMatch="false"><reg:DataResult>{each}</reg:DataResult></reg:QueryResult>'
        for each in registrations
    )
    content = f"<mes:QueryRegistrationResponse>{status}{results}</mes:QueryRegistrationResponse>"
    return interface(content, version)


def submission(*registrations: str, version: str = "2.1") -> bytes:
    """A request to store registrations."""
    requests = "".join(
        f'<reg:RegistrationRequest action="Replace">{each}</reg:RegistrationRequest>' for each in registrations
    )
    return interface(f"<mes:SubmitRegistrationsRequest>{requests}</mes:SubmitRegistrationsRequest>", version)


def as_json(identifier: str, source: str = "https://example.org/exr.xml", *, fusion: bool = False) -> bytes:
    """A message of one registration in JSON, for which no standard has a form."""
    members = {"id": identifier, "provisionAgreement": agreement(), "datasource": {"simpleDataSource": source}}
    if fusion:
        return json.dumps({"meta": {"id": "R1"}, "Registration": [members]}).encode()
    return json.dumps({"meta": {"id": "R1"}, "data": {"registrations": [members]}}).encode()
