"""Structures to begin with: invented, valid by the schema of SDMX-ML 2.1, the same for the same arguments."""

from __future__ import annotations

from collections.abc import Iterator

from contexture_sandbox.registry.messages import ORDER_OF_2_1

AGENCIES = ("CITY", "CITY.TRAFFIC", "CITY.HEALTH")
CODELISTS_IN_A_GROUP, STRUCTURES_IN_A_GROUP = 6, 10
_MESSAGE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<mes:Structure xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" '
    'xmlns:str="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure" '
    'xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common">'
    "<mes:Header><mes:ID>SEED</mes:ID><mes:Test>true</mes:Test><mes:Prepared>2026-01-01T00:00:00Z</mes:Prepared>"
    '<mes:Sender id="SANDBOX"/></mes:Header><mes:Structures>{containers}</mes:Structures></mes:Structure>'
)


def seed_message(count: int, seed: int = 1) -> bytes:
    """A message of so many structures; none refers to one that isn't in it.

    Each ten are six code lists, a concept scheme, a data structure that uses them, and two dataflows.

    Args:
        count: of structures, at least 1.
        seed: another one gives other code lists under the same URNs.
    """
    containers: dict[str, list[str]] = {}
    for container, artefact in _structures(count, seed):
        containers.setdefault(container, []).append(artefact)
    written = (f"<str:{name}>{''.join(containers[name])}</str:{name}>" for name in ORDER_OF_2_1 if name in containers)
    return _MESSAGE.format(containers="".join(written)).encode()


def seed_codelist(number: int, *, codes: int) -> bytes:
    """A message of one of the code lists, with so many codes."""
    artefact = _codelist(AGENCIES[number // CODELISTS_IN_A_GROUP % len(AGENCIES)], number, codes)
    return _MESSAGE.format(containers=f"<str:Codelists>{artefact}</str:Codelists>").encode()


def _structures(count: int, seed: int) -> Iterator[tuple[str, str]]:
    for position in range(count):
        group, within = divmod(position, STRUCTURES_IN_A_GROUP)
        agency = AGENCIES[group % len(AGENCIES)]
        if within < CODELISTS_IN_A_GROUP:
            number = group * CODELISTS_IN_A_GROUP + within
            yield "Codelists", _codelist(agency, number, 3 + (number * 7 + seed * 13) % 40)
        elif within == CODELISTS_IN_A_GROUP:
            yield "Concepts", _concepts(agency, group)
        elif within == CODELISTS_IN_A_GROUP + 1:
            yield "DataStructures", _data_structure(agency, group)
        else:
            yield "Dataflows", _dataflow(agency, group, within)


def _opened(element: str, identifier: str, agency: str) -> str:
    return (
        f'<str:{element} id="{identifier}" agencyID="{agency}" version="1.0">'
        f'<com:Name xml:lang="en">{identifier}</com:Name>'
    )


def _codelist(agency: str, number: int, codes: int) -> str:
    items = "".join(
        f'<str:Code id="C{code:03}"><com:Name xml:lang="en">Code {code}</com:Name></str:Code>' for code in range(codes)
    )
    return f"{_opened('Codelist', f'CL_{number:05}', agency)}{items}</str:Codelist>"


def _concepts(agency: str, group: int) -> str:
    names = [f"D{number}" for number in range(CODELISTS_IN_A_GROUP)] + ["OBS_VALUE"]
    items = "".join(
        f'<str:Concept id="{name}"><com:Name xml:lang="en">{name}</com:Name></str:Concept>' for name in names
    )
    return f"{_opened('ConceptScheme', f'CS_{group:05}', agency)}{items}</str:ConceptScheme>"


def _data_structure(agency: str, group: int) -> str:
    dimensions = "".join(_dimension(agency, group, position) for position in range(CODELISTS_IN_A_GROUP))
    return (
        f"{_opened('DataStructure', f'DSD_{group:05}', agency)}<str:DataStructureComponents>"
        f'<str:DimensionList id="DimensionDescriptor">{dimensions}</str:DimensionList>'
        f'<str:MeasureList id="MeasureDescriptor"><str:PrimaryMeasure id="OBS_VALUE">'
        f"{_concept(agency, group, 'OBS_VALUE')}</str:PrimaryMeasure></str:MeasureList>"
        "</str:DataStructureComponents></str:DataStructure>"
    )


def _dimension(agency: str, group: int, position: int) -> str:
    number = group * CODELISTS_IN_A_GROUP + position
    return (
        f'<str:Dimension id="D{position}" position="{position + 1}">{_concept(agency, group, f"D{position}")}'
        f'<str:LocalRepresentation><str:Enumeration><Ref id="CL_{number:05}" agencyID="{agency}" version="1.0" '
        'package="codelist" class="Codelist"/></str:Enumeration></str:LocalRepresentation></str:Dimension>'
    )


def _concept(agency: str, group: int, name: str) -> str:
    return (
        f'<str:ConceptIdentity><Ref id="{name}" maintainableParentID="CS_{group:05}" maintainableParentVersion="1.0" '
        f'agencyID="{agency}" package="conceptscheme" class="Concept"/></str:ConceptIdentity>'
    )


def _dataflow(agency: str, group: int, within: int) -> str:
    return (
        f"{_opened('Dataflow', f'DF_{group:05}_{within}', agency)}<str:Structure>"
        f'<Ref id="DSD_{group:05}" agencyID="{agency}" version="1.0" package="datastructure" class="DataStructure"/>'
        "</str:Structure></str:Dataflow>"
    )
