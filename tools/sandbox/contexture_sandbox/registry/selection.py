"""Which structures a query selects, and which come with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from contexture.sources.sdmx import Urn
from contexture.sources.sdmx.versions import VersionPattern
from contexture_sandbox.registry.model import Structure
from contexture_sandbox.registry.queries import ALL, Query

Structures = Mapping[str, Structure]


def selected(query: Query, there: Structures) -> list[Structure]:
    """What is asked for itself, in the order of URNs."""
    return _by_urn(query, there) or _by_name(query, there)


def _by_urn(query: Query, there: Structures) -> list[Structure]:
    """The one structure whose name is asked for: found without looking at all others."""
    if query.kinds is None or any(len(each) != 1 for each in (query.kinds, query.agencies, query.ids, query.versions)):
        return []
    [kind], [version] = query.kinds, query.versions
    found = there.get(str(Urn.of(kind, query.agencies[0], query.ids[0], version.text)))
    # Two kinds may share a class, and some schemes have one version whatever is asked for.
    is_it = found is not None and (found.first.kind, found.first.version) == (kind, version.text)
    return [found] if found is not None and is_it else []


def _by_name(query: Query, there: Structures) -> list[Structure]:
    by_name: dict[tuple[str, ...], dict[str, Structure]] = {}
    for structure in there.values():
        artefact = structure.first
        if _named(query, structure):
            name = (artefact.kind, str(artefact.agency), str(artefact.id))
            by_name.setdefault(name, {})[artefact.version] = structure
    found = [
        versions[version]
        for versions in by_name.values()
        for asked in query.versions
        for version in asked.select(versions)
    ]
    return sorted({each.urn: each for each in found}.values(), key=lambda each: each.urn)


def companions(query: Query, found: Sequence[Structure], there: Structures) -> list[Structure]:
    """What `references` adds to it, in the order of URNs."""
    if query.references == "parents":
        added = _parents(found, there)
    elif query.references == "children":
        added = _children(found, there)
    elif query.references == "descendants":
        added = _descendants(found, there)
    else:
        added = {}
    own = {structure.urn for structure in found}
    return [added[urn] for urn in sorted(added) if urn not in own]


def resolved(reference: str, there: Collection[str]) -> str | None:
    """The URN of the structure that a reference means, which may leave the version open; None where there is none."""
    if reference in there:
        return reference
    asked = Urn.parse(reference)
    same = {urn.version: str(urn) for urn in map(Urn.parse, there) if _same_but_version(urn, asked)}
    try:
        versions = VersionPattern.parse(asked.version).select(same)
    except ValueError:
        return None
    return same[versions[0]] if versions else None


def _named(query: Query, structure: Structure) -> bool:
    artefact = structure.first
    return (
        (query.kinds is None or artefact.kind in query.kinds)
        and (ALL in query.agencies or artefact.agency in query.agencies)
        and (ALL in query.ids or artefact.id in query.ids)
    )


def _same_but_version(one: Urn, other: Urn) -> bool:
    return (one.class_name, one.agency, one.id) == (other.class_name, other.agency, other.id)


def _children(found: Iterable[Structure], there: Structures) -> dict[str, Structure]:
    references = {reference for structure in found for reference in structure.first.references}
    urns = {resolved(reference, there) for reference in references}
    return {urn: there[urn] for urn in urns if urn is not None}


def _descendants(found: Iterable[Structure], there: Structures) -> dict[str, Structure]:
    reached: dict[str, Structure] = {}
    level = _children(found, there)
    while level:
        reached |= level
        level = {urn: each for urn, each in _children(level.values(), there).items() if urn not in reached}
    return reached


def _parents(found: Iterable[Structure], there: Structures) -> dict[str, Structure]:
    own = {structure.urn for structure in found}
    return {
        urn: structure
        for urn, structure in there.items()
        if any(resolved(reference, there) in own for reference in structure.first.references)
    }
