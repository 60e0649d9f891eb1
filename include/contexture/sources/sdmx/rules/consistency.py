"""The rules about all published structures together: what a run publishes, with what was published before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from contexture.events.rules import RuleFindings, Violation, named_urn
from contexture.sources.sdmx.ordering import VersionIndex, parsed_urn
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions
from contexture.sources.sdmx.selectors import Selector
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.splitting.encodings import utf8
from contexture.sources.sdmx.splitting.xml_envelope import START_TAG
from contexture.sources.sdmx.urn import Urn
from contexture.sources.sdmx.versions import Version, version_key

_ATTRIBUTE = re.compile(rb"\sisFinal\s*=\s*[\"']\s*(?:true|1)\s*[\"']")
# Quotes inside of a JSON text are escaped, so this is a member.
_MEMBER = re.compile(rb'"isFinal"\s*:\s*true\b')


def is_final(artefact: Artefact) -> bool:
    """Whether it is a semantic version without extension, or is marked `isFinal`, as SDMX has it up to 2.1."""
    return is_stable(artefact.version) or _is_marked_final(artefact)


def is_stable(version: str) -> bool:
    """Whether it is a semantic version without extension, such as 2.3.1, whose structure may not change (SDMX 3.0)."""
    try:
        return Version.parse(version).is_stable
    except ValueError:
        return False


def _is_marked_final(artefact: Artefact) -> bool:
    content = utf8(artefact.content, artefact.envelope.before)
    if artefact.format.is_json:
        return _MEMBER.search(content) is not None
    start = START_TAG.match(content)
    return start is not None and _ATTRIBUTE.search(start[0]) is not None


_DEFAULTS = StructureRuleOptions()


@dataclass(frozen=True, slots=True)
class PublishedStructure:
    """One structure of a run.

    Attributes:
        urn, content_hash, references: of the artefact.
        is_final: the result of `is_final`.
    """

    urn: str
    content_hash: bytes
    references: tuple[str, ...] = ()
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class ConsistencyViolation:
    """A rule about all published structures that one structure breaks, once for each, however often it is broken."""

    urn: str
    violation: Violation


def check_consistency(
    structures: Sequence[PublishedStructure],
    published: Mapping[str, bytes],
    options: StructureRuleOptions = _DEFAULTS,
    *,
    final: Mapping[str, bool] = MappingProxyType({}),
    gone: Iterable[str] = (),
    shown: Iterable[str] = (),
    in_turn: bool = False,
) -> list[ConsistencyViolation]:
    """Returns the rules about all published structures that structures break, in the order of these.

    Args:
        structures: those that were accepted, in the order of the source.
        published: content hash by URN of what the target held before, from state.
        options: the publication's settings.
        final: by URN, whether what was published is final; where that is not known, the new structure decides.
        gone: URNs that this run deletes, so that they are no longer published.
        shown: URNs of what else the registry holds, such as what was refused or cannot be expressed: it is not missing.
        in_turn: these are changes in sequence, so that one structure may come again with another content; else they
            were read together, and are compared with what was published alone.
    """
    still = dict.fromkeys(published)
    for urn in gone:
        still.pop(urn, None)
    held = VersionIndex([*still, *(each.urn for each in structures), *shown])
    series = _Series(published)
    current, was_final = dict(published), dict(final)
    broken = []
    for each in structures:
        found = RuleFindings(options.severities)
        _check_references(each, held, options.selectors, found)
        _check_succession(each, current.get(each.urn), series, found, was_final=was_final.get(each.urn, each.is_final))
        broken += [ConsistencyViolation(each.urn, violation) for violation in found.violations]
        if in_turn:
            current[each.urn], was_final[each.urn] = each.content_hash, each.is_final
            series.add(each.urn)
    return broken


def _check_references(
    structure: PublishedStructure, held: VersionIndex, selectors: Sequence[Selector], found: RuleFindings
) -> None:
    if not found.includes("dangling-reference"):
        return
    missing = [
        reference
        for reference in structure.references
        if not held.resolve_reference(reference) and _is_covered(reference, selectors)
    ]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        found.add("dangling-reference", f"{named_urn(missing[0])} is not stored{more}")


def _is_covered(reference: str, selectors: Sequence[Selector]) -> bool:
    """Whether what is referred to would have been read if it were there.

    A selector for the latest versions covers none with certainty: what is not the latest is left out.
    """
    return not selectors or any(
        selector.matches(reference) and not any(pattern.is_latest for pattern in selector.versions)
        for selector in selectors
    )


def _check_succession(
    structure: PublishedStructure, published: bytes | None, series: _Series, found: RuleFindings, *, was_final: bool
) -> None:
    urn = parsed_urn(structure.urn)
    if urn is None:
        return
    if published is None:
        for later in series.later_than(urn):
            found.add("version-order", f"version {urn.version} is new, and {later} was published before it")
    elif published != structure.content_hash and (was_final or is_stable(urn.version)):
        found.add("final-content", f"version {urn.version} is final, and its content is not the one that was published")


class _Series:
    """The latest version of each artefact that was published."""

    def __init__(self, urns: Iterable[str]) -> None:
        self._latest: dict[tuple[str, str, str], str] = {}
        for urn in urns:
            self.add(urn)

    def add(self, text: str) -> None:
        if urn := parsed_urn(text):
            latest = self._latest.get(_artefact(urn))
            if latest is None or version_key(urn.version) > version_key(latest):
                self._latest[_artefact(urn)] = urn.version

    def later_than(self, urn: Urn) -> Iterator[str]:
        """Yields the latest version, if it is later than this one."""
        latest = self._latest.get(_artefact(urn))
        if latest is not None and version_key(latest) > version_key(urn.version):
            yield latest


def _artefact(urn: Urn) -> tuple[str, str, str]:
    return urn.class_name, urn.agency, urn.id
