"""What another library asks is understood: the paths and the client of pysdmx (SDMX reference, section 1.6)."""

from __future__ import annotations

import pytest
from pysdmx.api.fmr import RegistryClient
from pysdmx.api.fmr.maintenance import RegistryMaintenanceClient
from pysdmx.api.qb import ApiVersion, StructureDetail, StructureQuery, StructureType
from pysdmx.model import Code, Codelist

from builders.registry import Client, codelist, codelists
from contexture_sandbox.registry import TestRegistry

BASES = {ApiVersion.V2_0_0: "/sdmx/v2", ApiVersion.V1_5_0: "/ws/public/sdmxapi/rest"}


@pytest.mark.parametrize("omit_defaults", [True, False])
@pytest.mark.parametrize("version", list(BASES))
@pytest.mark.parametrize(
    ("query", "count"),
    [
        (StructureQuery(), 2),
        (StructureQuery(StructureType.ALL, "*", "*", "*", detail=StructureDetail.ALL_STUBS), 3),
        (StructureQuery(StructureType.CODELIST, "X", ["CL_A", "CL_B"], "*"), 3),
        (StructureQuery(StructureType.CODELIST, ["X", "Y"], "CL_A", "~"), 1),
        (StructureQuery(StructureType.CODELIST, "X", "CL_A", "1.0"), 1),
    ],
)
def test_paths_of_its_query_builder_are_answered(
    client: Client, query: StructureQuery, count: int, version: ApiVersion, omit_defaults: bool
):
    client.submit(codelists(codelist("CL_A"), codelist("CL_A", "2.0"), codelist("CL_B")))
    assert len(client.artefacts(BASES[version] + query.get_url(version, omit_defaults))) == count


def test_its_clients_write_and_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")  # it heeds proxies of the environment
    with TestRegistry() as registry:
        writer = RegistryMaintenanceClient(registry.url, "root", "password")
        writer.put_structures([Codelist("CL_P", agency="X", name="p", items=[Code("A", name="a")])])
        assert registry.store.transactions[0].added == ("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:CL_P(1.0)",)
        read = RegistryClient(f"{registry.url}/sdmx/v2").get_codes("X", "CL_P", "1.0")
        assert [code.id for code in read.codes] == ["A"]
