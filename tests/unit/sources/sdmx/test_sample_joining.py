"""The real messages of registries, split and joined with others of their format: nothing is lost, nothing is other."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from io import BytesIO

import pytest

from contexture.sources.sdmx import Artefact, Format, split
from contexture.sources.sdmx.splitting.joining import MessageJoiner
from samples_location import samples_or_skip


@cache
def by_format() -> dict[Format, list[Artefact]]:
    """The artefacts of all samples, each split again from a message of its own, as runs store it."""
    found = defaultdict[Format, list[Artefact]](list)
    for path in sorted((samples_or_skip() / "sdmx").glob("*/*")):
        for artefact in split(BytesIO(path.read_bytes())):
            found[artefact.format] += split(BytesIO(artefact.message()))
    return found


@pytest.mark.parametrize(
    "format_",
    [
        Format.SDMX_ML_2_0,
        Format.SDMX_ML_2_1,
        Format.SDMX_ML_3_0,
        Format.SDMX_JSON_2_0,
        Format.SDMX_JSON_2_1,
        Format.FUSION_JSON,
    ],
)
def test_messages_of_several_registries_are_joined_without_loss(format_: Format) -> None:
    artefacts, joiner = by_format()[format_], MessageJoiner()
    for artefact in artefacts:
        joiner.add(artefact)
    joined = list(split(BytesIO(joiner.message())))
    assert len(joined) == len(artefacts) > 1
    identities = [sorted((each.urn or "", each.content_hash) for each in some) for some in (joined, artefacts)]
    assert identities[0] == identities[1]
