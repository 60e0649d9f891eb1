"""One name for an artefact that formats tell by different classes."""

from __future__ import annotations

from dataclasses import replace

from contexture.sdmx.formats import Format
from contexture.sdmx.urns import Urn

# SDMX 3.0 renamed it; a registry tells its log and SDMX-JSON by one name, and SDMX-ML 2.1 by the other.
_RENAMED = {"ContentConstraint": "DataConstraint"}


def same_artefact(urn: str) -> str:
    """The URN by which artefacts are told to be the same, whatever format they were read in.

    >>> same_artefact("urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=ECB:CR_EXR(1.0)")
    'urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=ECB:CR_EXR(1.0)'
    """
    try:
        named = Urn.parse(urn)
    except ValueError:
        return urn
    renamed = _RENAMED.get(named.class_name)
    return urn if renamed is None else str(replace(named, class_name=renamed))


def named_in(urn: str, format_: Format) -> str:
    """The URN that an artefact has in messages of a format.

    >>> named_in("urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=ECB:CR_EXR(1.0)", Format.SDMX_ML_2_1)
    'urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=ECB:CR_EXR(1.0)'
    """
    if format_ is not Format.SDMX_ML_2_1:
        return same_artefact(urn)
    try:
        named = Urn.parse(urn)
    except ValueError:
        return urn
    former = {new: old for old, new in _RENAMED.items()}.get(named.class_name)
    return urn if former is None else str(replace(named, class_name=former))
