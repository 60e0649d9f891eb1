"""Which structure it is: whether SDMX allows its names, and whether it calls itself what it is."""

from __future__ import annotations

import re

from contexture.events.rules import Findings, named, named_urn
from contexture.sdmx.artefact import Artefact
from contexture.sdmx.formats import Format
from contexture.sdmx.identity import NOT_MAINTAINABLE
from contexture.sdmx.kinds import PACKAGES
from contexture.sdmx.versions import Version

# IDType and NestedIDType of SDMXCommonReferences.xsd. That an agency begins with a letter is left to the schema, for
# URNs can do without.
_ID = re.compile(r"[A-Za-z0-9_@$\-]+")
_AGENCY = re.compile(rf"{_ID.pattern}(?:\.{_ID.pattern})*")
_CHARACTERS = "letters, digits and _ @ $ -"

# The schemas of these have any text for a version.
_WITHOUT_GRAMMAR = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})
_ANY_VERSION = re.compile(r"[A-Za-z0-9._\-]+")


def check_identity(artefact: Artefact, found: Findings) -> None:
    """Finds what is wrong with an artefact's names."""
    if artefact.kind not in PACKAGES and artefact.kind not in NOT_MAINTAINABLE:
        found.add("unknown-kind", f"SDMX's information model has no kind {named(artefact.kind)}")
    if artefact.urn is None:
        found.refuse("urn-missing", f"{named(artefact.kind)} {_why_without_urn(artefact)}")
    for problem in _problems(artefact):
        found.add("identity", problem)
    if artefact.urn and artefact.declared_urn and artefact.declared_urn != artefact.urn:
        found.add("urn-agreement", f"the structure says of itself that it is {named_urn(artefact.declared_urn)}")


def _why_without_urn(artefact: Artefact) -> str:
    if artefact.kind in NOT_MAINTAINABLE:
        return f"{named(artefact.id or '')} isn't maintainable, so that it has no URN"
    if artefact.kind not in PACKAGES:
        return f"{named(artefact.id or '')} is of an unknown kind and declares no URN"
    lacking = [name for name, text in (("agency", artefact.agency), ("id", artefact.id)) if not text]
    return f"has no {' and no '.join(lacking)}, so that it has no URN"


def _problems(artefact: Artefact) -> list[str]:
    problems = []
    if artefact.agency and not _AGENCY.fullmatch(artefact.agency):
        problems.append(f"the agency {named(artefact.agency)} has more than {_CHARACTERS} with dots between them")
    if artefact.id and not _ID.fullmatch(artefact.id):
        problems.append(f"the id {named(artefact.id)} has more than {_CHARACTERS}")
    if not _is_version(artefact):
        problems.append(f"the version {named(artefact.version)} is none such as 1.0, 2.3.1 or 2.3.1-draft")
    return problems


def _is_version(artefact: Artefact) -> bool:
    if artefact.format in _WITHOUT_GRAMMAR:
        return _ANY_VERSION.fullmatch(artefact.version) is not None
    try:
        Version.parse(artefact.version)
    except ValueError:
        return False
    return True
