"""Structure messages of every format that can be split, small enough to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

COMMON_2_1 = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common"
OLD = {"1.0": "v1_0", "2.0": "v2_0"}
NEW = {"2.1": "v2_1", "3.0": "v3_0", "3.1": "v3_1"}
HEADER = (
    "<{m}Header><{m}ID>{id}</{m}ID><{m}Test>false</{m}Test><{m}Prepared>2024-01-01T00:00:00</{m}Prepared></{m}Header>"
)


def namespaces(version: str, prefixes: Sequence[str] = ("mes", "str", "com")) -> str:
    """Declarations of the three namespaces of a version; an empty prefix declares the default namespace."""
    host = "http://www.SDMX.org/resources/SDMXML" if version in OLD else "http://www.sdmx.org/resources/sdmxml"
    folder = (OLD | NEW)[version]
    parts = zip(prefixes, ("message", "structure", "common"), strict=True)
    return " ".join(f'xmlns{":" if prefix else ""}{prefix}="{host}/schemas/{folder}/{part}"' for prefix, part in parts)


def ml(
    version: str,
    *containers: tuple[str, str],
    prefixes: Sequence[str] = ("mes", "str", "com"),
    prolog: str = '<?xml version="1.0" encoding="UTF-8"?>\n',
    header: str = "M1",
) -> str:
    """A structure message: containers by name, each with the XML of its artefacts."""
    message, structure = (f"{prefix}:" if prefix else "" for prefix in prefixes[:2])
    own = message if version in OLD else structure
    inner = "".join(f"<{own}{name}>{artefacts}</{own}{name}>" for name, artefacts in containers)
    if version in NEW:
        inner = f"<{message}Structures>{inner}</{message}Structures>"
    head = HEADER.format(m=message, id=header)
    return f"{prolog}<{message}Structure {namespaces(version, prefixes)}>{head}{inner}</{message}Structure>"


CODELIST_2_1 = (
    '<str:Codelist id="CL_SEX" agencyID="SDMX" version="2.1" '
    'urn="urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)">'
    "<com:Annotations><com:Annotation><com:AnnotationType>note</com:AnnotationType></com:Annotation></com:Annotations>"
    '<com:Name xml:lang="en">Sex</com:Name><com:Name xml:lang="fr">Sexe</com:Name><!-- two codes -->'
    '<str:Code id="M"><com:Name xml:lang="en">Male</com:Name></str:Code>'
    '<str:Code id="F"><com:Name xml:lang="en">Female &amp; other</com:Name>'
    '<str:Parent><Ref id="M"/></str:Parent></str:Code>'
    "</str:Codelist>"
)
DATAFLOW_2_1 = (
    '<str:Dataflow id="EXR" agencyID="ECB" version="1.0"><com:Name xml:lang="en">Rates</com:Name><str:Structure>'
    '<Ref id="ECB_EXR1" agencyID="ECB" version="2.0" package="datastructure" class="DataStructure"/>'
    "</str:Structure></str:Dataflow>"
)
DATAFLOW_3 = (
    '<str:Dataflow id="EXR" agencyID="ECB" version="1.0.0"><com:Name xml:lang="en">Rates</com:Name><str:Structure>'
    "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0+.0)</str:Structure></str:Dataflow>"
)
CODELIST_2_0 = (
    '<str:CodeList id="CL_FREQ" agencyID="BIS" version="1.0"><str:Name xml:lang="en">Frequency</str:Name>'
    '<str:Code value="A"><str:Description xml:lang="en">Annual</str:Description></str:Code></str:CodeList>'
)
KEY_FAMILY_2_0 = (
    '<str:KeyFamily id="DEBT" agencyID="BIS"><str:Name xml:lang="en">Debt</str:Name><str:Components>'
    '<str:Dimension conceptRef="FREQ" conceptSchemeRef="CONCEPTS" conceptSchemeAgency="SDMX" codelist="CL_FREQ"/>'
    '<str:Dimension conceptRef="AREA" codelist="CL_AREA" codelistAgency="IMF" codelistVersion="1.2"/>'
    "</str:Components></str:KeyFamily>"
)
DATAFLOW_2_0 = (
    '<str:Dataflow id="DF" agencyID="BIS" version="1.0"><str:Name xml:lang="en">Flow</str:Name><str:KeyFamilyRef>'
    "<str:KeyFamilyID>DEBT</str:KeyFamilyID><str:KeyFamilyAgencyID>BIS</str:KeyFamilyAgencyID>"
    "<str:Version>1.3</str:Version></str:KeyFamilyRef></str:Dataflow>"
)
KEY_FAMILY_1_0 = (
    '<str:KeyFamily id="DEBT" agency="BIS" version="1.0"><str:Name xml:lang="en">Debt</str:Name><str:Components>'
    '<str:Dimension concept="FREQ" codelist="CL_FREQ"/></str:Components></str:KeyFamily>'
)
CODELIST_1_0 = (
    '<str:CodeList id="CL_FREQ" agency="BIS" version="1.0"><str:Name xml:lang="en">Frequency</str:Name>'
    '<str:Code value="A"><str:Description xml:lang="en">Annual</str:Description></str:Code></str:CodeList>'
)

CODELIST_JSON: Mapping[str, object] = {
    "id": "CL_SEX",
    "agencyID": "SDMX",
    "version": "2.1",
    "name": "Sex",
    "names": {"en": "Sex", "fr": "Sexe"},
    "links": [{"rel": "self", "urn": "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"}],
    "codes": [{"id": "M", "name": "Male"}, {"id": "F", "name": "Female", "parent": "M"}],
}
DATAFLOW_JSON: Mapping[str, object] = {
    "id": "EXR",
    "agencyID": "ECB",
    "version": "1.0",
    "structure": "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0)",
}
CODELIST_FUSION: Mapping[str, object] = {
    "id": "CL_SEX",
    "agencyId": "SDMX",
    "version": "2.1",
    "names": [{"locale": "en", "value": "Sex"}],
    "items": [{"id": "M", "urn": "urn:sdmx:org.sdmx.infomodel.codelist.Code=SDMX:CL_SEX(2.1).M"}],
}
_SCHEMAS = {
    "1.0": "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/structure-message/tools/schemas/1.0/"
    "sdmx-json-structure-schema.json",
    "2.0": "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/develop/structure-message/tools/schemas/2.0.0/"
    "sdmx-json-structure-schema.json",
    "2.1": "https://json.sdmx.org/2.1/sdmx-json-structure-schema.json",
}


def meta(version: str, identifier: str = "M1") -> dict[str, object]:
    """The header of SDMX-JSON."""
    return {"id": identifier, "schema": _SCHEMAS[version], "test": False, "prepared": "2024-01-01T00:00:00Z"}


def sdmx_json(version: str, data: Mapping[str, object], *, identifier: str = "M1") -> str:
    """A structure message of SDMX-JSON."""
    return json.dumps({"meta": meta(version, identifier), "data": data})
