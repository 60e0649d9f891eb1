"""The order in which structures are published: referenced structures before those that reference them.

Where references leave the order open, agencies come first, then code lists, concepts, structures, flows and what is
about flows; then agency and id decide, and an earlier version comes before a later one. So the order follows from the
structures alone, whatever order they come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from contexture.sources.sdmx.selectors import Selector
from contexture.sources.sdmx.urn import Urn
from contexture.sources.sdmx.versions import VersionPattern, version_key

_ANY = "*"


class VersionIndex:
    """Some structures, by their URNs.

    Args:
        urns: in the order of all results; those that cannot be parsed are found by their whole text alone.
    """

    def __init__(self, urns: Iterable[str]) -> None:
        self.urns = tuple(dict.fromkeys(urns))
        self._place = {urn: place for place, urn in enumerate(self.urns)}
        self._versions: dict[tuple[str, str, str], dict[str, str]] = {}
        for urn in self.urns:
            if parsed := parsed_urn(urn):
                self._versions.setdefault(_series(parsed), {})[parsed.version] = urn
        self._known: dict[str, tuple[str, ...]] = {}

    def __contains__(self, urn: str) -> bool:
        return urn in self._place

    def resolve_references(self, references: Iterable[str]) -> list[str]:
        """Returns the structures that any of the references selects, in their order."""
        found = {urn for reference in references for urn in self.resolve_reference(reference)}
        return sorted(found, key=self._place.__getitem__)

    def resolve_reference(self, reference: str) -> tuple[str, ...]:
        """Returns the structures that a reference selects: one, several where it contains `*`, or none."""
        if reference in self._place:
            return (reference,)
        if reference not in self._known:
            self._known[reference] = tuple(self._found(reference))
        return self._known[reference]

    def versions_of(self, urn: Urn) -> Mapping[str, str]:
        return self._versions.get(_series(urn), {})

    def _found(self, reference: str) -> Iterable[str]:
        parsed = parsed_urn(reference)
        if parsed is None:
            return ()
        pattern = _pattern(parsed.version)
        if _ANY in parsed.agency or _ANY in parsed.id:
            return _selector(parsed, pattern).select(self.urns)
        versions = self.versions_of(parsed)
        return [versions[version] for version in pattern.select(versions)]


def parsed_urn(urn: str) -> Urn | None:
    """Parses a URN; None where it is none."""
    try:
        return Urn.parse(urn)
    except ValueError:
        return None


def _series(urn: Urn) -> tuple[str, str, str]:
    return urn.class_name, urn.agency, urn.id


def _pattern(version: str) -> VersionPattern:
    try:
        return VersionPattern.parse(version)
    except ValueError:
        return VersionPattern(_ANY, _ANY)


def _selector(urn: Urn, pattern: VersionPattern) -> Selector:
    agencies, ids = (frozenset[str]() if part == _ANY else frozenset((part,)) for part in (urn.agency, urn.id))
    return Selector(str(urn), frozenset((urn.class_name,)), agencies, ids, (pattern,))


_KINDS = (
    "AgencyScheme",
    "OrganisationScheme OrganisationUnitScheme DataProviderScheme DataConsumerScheme MetadataProviderScheme",
    "Codelist ValueList",
    "ConceptScheme",
    "HierarchicalCodelist Hierarchy",
    "MetadataStructure DataStructure",
    "Metadataflow Dataflow",
    "MetadataProvisionAgreement ProvisionAgreement",
    "AttachmentConstraint AvailabilityConstraint ContentConstraint DataConstraint MetadataConstraint",
    "Registration",
)
_RANKS = {kind: rank for rank, kinds in enumerate(_KINDS) for kind in kinds.split()}


@dataclass(frozen=True, slots=True)
class ReferenceOrder:
    """An order of structures.

    Attributes:
        urns: each structure once, what it refers to before it.
        cycles: structures that refer to each other, directly or through others, so that no order is right for all of
            them; they follow each other in `urns`.
    """

    urns: tuple[str, ...]
    cycles: tuple[tuple[str, ...], ...]

    @property
    def deletions(self) -> tuple[str, ...]:
        """The order to delete them in: what refers to something before it."""
        return self.urns[::-1]


def reference_order(references: Mapping[str, Iterable[str]]) -> ReferenceOrder:
    """Returns the order in which to publish structures.

    Args:
        references: for the URN of each structure the URNs that it refers to, as `Artefact.references` has them. A
            version such as `1.0+.0` or `~` represents the latest match, `*` all versions, and one that cannot be parsed
            all versions too. References to other structures have no effect.
    """
    held = VersionIndex(sorted(references, key=_key))
    groups = tuple(_Grouping({urn: held.resolve_references(references[urn]) for urn in held.urns}).groups())
    return ReferenceOrder(
        tuple(urn for group in groups for urn in group), tuple(group for group in groups if len(group) > 1)
    )


class _Grouping:
    """Structures that refer to each other, others by themselves; what a group refers to comes before it.

    These are the strongly connected components in the order in which Tarjan's algorithm finds them. It is written
    without recursion, because references may be as deep as there are structures.
    """

    def __init__(self, references: Mapping[str, Sequence[str]]) -> None:
        self._references = references
        self._place = {urn: place for place, urn in enumerate(references)}
        self._found: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: list[str] = []
        self._done: set[str] = set()

    def groups(self) -> Iterator[tuple[str, ...]]:
        """Yields every group; within one, structures are in the order they were given in."""
        for urn in self._references:
            if urn not in self._found:
                yield from self._reached_from(urn)

    def _reached_from(self, start: str) -> Iterator[tuple[str, ...]]:
        path = [self._entered(start)]
        while path:
            urn, others = path[-1]
            other = next((each for each in others if each not in self._done), None)
            if other is None:
                path.pop()
                if path:
                    self._lower(path[-1][0], self._lowest[urn])
                if self._lowest[urn] == self._found[urn]:
                    yield self._closed(urn)
            elif other in self._found:
                self._lower(urn, self._found[other])
            else:
                path.append(self._entered(other))

    def _entered(self, urn: str) -> tuple[str, Iterator[str]]:
        self._found[urn] = self._lowest[urn] = len(self._found)
        self._open.append(urn)
        return urn, iter(self._references[urn])

    def _lower(self, urn: str, number: int) -> None:
        self._lowest[urn] = min(self._lowest[urn], number)

    def _closed(self, urn: str) -> tuple[str, ...]:
        group = [self._open.pop()]
        while group[-1] != urn:
            group.append(self._open.pop())
        self._done.update(group)
        return tuple(sorted(group, key=self._place.__getitem__))


def _key(urn: str) -> tuple[object, ...]:
    parsed = parsed_urn(urn)
    if parsed is None:
        return (len(_KINDS) + 1, urn)
    rank = _RANKS.get(parsed.class_name, len(_KINDS))
    return (rank, parsed.agency, parsed.id, version_key(parsed.version), urn)
