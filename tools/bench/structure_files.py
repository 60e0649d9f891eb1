"""Structure messages as large registries give them: one long code list, many short ones, data structures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

CODES_OF_A_SHORT_LIST = 50
DIMENSIONS = 40
_BASE = "http://www.sdmx.org/resources/sdmxml/schemas/"
_PREPARED = "2026-01-01T00:00:00Z"
_JSON_SCHEMA = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/develop/structure-message/tools/schemas/2.0.0/"
    "sdmx-json-structure-schema.json"
)


def write_code_lists(file: Path, sizes: tuple[int, ...]) -> None:
    """SDMX-ML 2.1 with a code list in two languages of each of these sizes."""
    lists = (_code_list(number, codes) for number, codes in enumerate(sizes))
    _write(file, _message("v2_1", "Codelists", chain.from_iterable(lists)))


def write_data_structures(file: Path, number: int) -> None:
    """SDMX-ML 3.0 with data structures of 40 dimensions, each with a concept and a code list."""
    _write(file, _message("v3_0", "DataStructures", (_data_structure(each) for each in range(number))))


def write_json_code_list(file: Path, codes: int) -> None:
    """SDMX-JSON 2.0 with one code list in two languages."""
    meta = {"id": "BENCH", "test": False, "schema": _JSON_SCHEMA, "prepared": _PREPARED, "sender": {"id": "BENCH"}}
    head = json.dumps({"meta": meta, "data": {"codelists": [{"id": "CL", "name": "A list", "agencyID": "BENCH"}]}})
    pieces = (f"{',' if number else ''}{json.dumps(_json_code(number))}" for number in range(codes))
    _write(file, chain([head.removesuffix("}]}}"), ', "version": "1.0", "codes": ['], pieces, ["]}]}}"]))


def _write(file: Path, pieces: Iterator[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(pieces)


def _message(version: str, container: str, artefacts: Iterator[str]) -> Iterator[str]:
    prefixes = {"mes": "message", "str": "structure", "com": "common"}
    declared = " ".join(f'xmlns:{prefix}="{_BASE}{version}/{part}"' for prefix, part in prefixes.items())
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Structure {declared}>\n  <mes:Header><mes:ID>BENCH</mes:ID>'
    yield f'<mes:Test>false</mes:Test><mes:Prepared>{_PREPARED}</mes:Prepared><mes:Sender id="BENCH"/></mes:Header>\n'
    yield f"  <mes:Structures>\n    <str:{container}>\n"
    yield from artefacts
    yield f"    </str:{container}>\n  </mes:Structures>\n</mes:Structure>\n"


def _code_list(number: int, codes: int) -> Iterator[str]:
    urn = "urn:sdmx:org.sdmx.infomodel.codelist"
    yield f'      <str:Codelist urn="{urn}.Codelist=BENCH:CL_{number}(1.0)" agencyID="BENCH" id="CL_{number}" '
    yield f'version="1.0">\n        <com:Name xml:lang="en">List {number}</com:Name>\n'
    for code in range(codes):
        yield f'        <str:Code urn="{urn}.Code=BENCH:CL_{number}(1.0).C{code}" id="C{code}">\n'
        yield f'          <com:Name xml:lang="en">The name of code number {code}</com:Name>\n'
        yield f'          <com:Name xml:lang="fr">Le nom du code numéro {code}</com:Name>\n        </str:Code>\n'
    yield "      </str:Codelist>\n"


def _data_structure(number: int) -> str:
    of = "urn:sdmx:org.sdmx.infomodel"
    own = f"BENCH:DSD_{number}(1.0.0)"
    dimensions = "".join(
        f'            <str:Dimension id="D{each}" urn="{of}.datastructure.Dimension={own}.D{each}" '
        f'position="{each + 1}">\n'
        f"              <str:ConceptIdentity>{of}.conceptscheme.Concept=BENCH:CS(1.0.0).C{each}</str:ConceptIdentity>\n"
        f"              <str:LocalRepresentation><str:Enumeration>{of}.codelist.Codelist=BENCH:CL_{each}(1.0.0)"
        f"</str:Enumeration></str:LocalRepresentation>\n            </str:Dimension>\n"
        for each in range(DIMENSIONS)
    )
    return (
        f'      <str:DataStructure urn="{of}.datastructure.DataStructure={own}" agencyID="BENCH" id="DSD_{number}" '
        f'version="1.0.0">\n        <com:Name xml:lang="en">Structure {number}</com:Name>\n'
        f'        <str:DataStructureComponents>\n          <str:DimensionList id="DimensionDescriptor">\n{dimensions}'
        "          </str:DimensionList>\n        </str:DataStructureComponents>\n      </str:DataStructure>\n"
    )


def _json_code(number: int) -> dict[str, object]:
    names = {"en": f"The name of code number {number}", "fr": f"Le nom du code numéro {number}"}
    urn = f"urn:sdmx:org.sdmx.infomodel.codelist.Code=BENCH:CL(1.0).C{number}"
    return {
        "id": f"C{number}",
        "links": [{"rel": "self", "type": "code", "urn": urn}],
        "name": names["en"],
        "names": names,
    }
