"""The checks of one structure: every rule that it can break alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from xml.parsers import expat

import orjson

from contexture.events import parse_json
from contexture.events.rules import RuleFindings, Violation, named_urn, violation_subject
from contexture.sources.sdmx.errors import SplitWarning, StructureMessageError
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.splitting.encodings import utf8
from contexture.sources.sdmx.splitting.identity import NOT_MAINTAINABLE
from contexture.sources.sdmx.urn import PACKAGES
from contexture.sources.sdmx.validation import SchemaValidator
from contexture.sources.sdmx.versions import Version

# IDType and NestedIDType of SDMXCommonReferences.xsd. That an agency begins with a letter is left to the schema,
# because URNs do not require it.
_ID = re.compile(r"[A-Za-z0-9_@$\-]+")
_AGENCY = re.compile(rf"{_ID.pattern}(?:\.{_ID.pattern})*")
_CHARACTERS = "letters, digits and _ @ $ -"

# The schemas of these have any text for a version.
_WITHOUT_GRAMMAR = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})
_ANY_VERSION = re.compile(r"[A-Za-z0-9._\-]+")


def check_identity(artefact: Artefact, found: RuleFindings) -> None:
    """Finds what is wrong with an artefact's names."""
    if artefact.kind not in PACKAGES and artefact.kind not in NOT_MAINTAINABLE:
        found.add("unknown-kind", f"SDMX's information model has no kind {violation_subject(artefact.kind)}")
    if artefact.urn is None:
        found.refuse("urn-missing", f"{violation_subject(artefact.kind)} {_why_without_urn(artefact)}")
    for problem in _problems(artefact):
        found.add("identity", problem)
    if artefact.urn and artefact.declared_urn and artefact.declared_urn != artefact.urn:
        found.add("urn-agreement", f"the structure declares itself as {named_urn(artefact.declared_urn)}")


def _why_without_urn(artefact: Artefact) -> str:
    if artefact.kind in NOT_MAINTAINABLE:
        return f"{violation_subject(artefact.id or '')} is not maintainable, so that it has no URN"
    if artefact.kind not in PACKAGES:
        return f"{violation_subject(artefact.id or '')} is of an unknown kind and declares no URN"
    lacking = [name for name, text in (("agency", artefact.agency), ("id", artefact.id)) if not text]
    if not lacking:
        return "has an agency or id with characters that no URN has"
    return f"has no {' and no '.join(lacking)}, so that it has no URN"


def _problems(artefact: Artefact) -> list[str]:
    problems = []
    if artefact.agency and not _AGENCY.fullmatch(artefact.agency):
        problems.append(
            f"the agency {violation_subject(artefact.agency)} has more than {_CHARACTERS} with dots between them"
        )
    if artefact.id and not _ID.fullmatch(artefact.id):
        problems.append(f"the id {violation_subject(artefact.id)} has more than {_CHARACTERS}")
    if not _is_version(artefact):
        problems.append(f"the version {violation_subject(artefact.version)} is none such as 1.0, 2.3.1 or 2.3.1-draft")
    return problems


def _is_version(artefact: Artefact) -> bool:
    if artefact.format in _WITHOUT_GRAMMAR:
        return _ANY_VERSION.fullmatch(artefact.version) is not None
    try:
        Version.parse(artefact.version)
    except ValueError:
        return False
    return True


_OLD = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})

# What has an id and is no item: remarks, people, and names of what is elsewhere.
_OTHER_ELEMENTS = frozenset({"Annotation", "Contact", "Ref"})
_OTHER_MEMBERS = frozenset({"annotations", "contacts", "links"})


def repeated_ids(artefact: Artefact) -> list[str]:
    """Returns ids that two items of one kind have in one place, each once for every repetition, in their order.

    Constraints have none: they name the components of others.
    """
    if artefact.kind.endswith("Constraint"):
        return []
    content = utf8(artefact.content, artefact.envelope.before)
    if artefact.format.is_json:
        return _in_json(content)
    return _Elements(by_value=artefact.format in _OLD).repeated(content)


class _Elements:
    """Reads one element without building a tree, because a code list may have a million codes."""

    def __init__(self, *, by_value: bool) -> None:
        self._by_value = by_value
        self._repeated: list[str] = []
        # One set for each open element with items in it.
        self._open: list[set[tuple[str, str]] | None] = [None]

    def repeated(self, content: bytes) -> list[str]:
        # Names keep their prefixes: those that are declared around the artefact are unknown here.
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.Parse(content, True)
        return self._repeated

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        identifier = attributes.get("id")
        if identifier is None and self._by_value and name.endswith("Code"):
            # SDMX-ML 1.0 and 2.0 have ids of codes there.
            identifier = attributes.get("value")
        if identifier is not None and name.rpartition(":")[2] not in _OTHER_ELEMENTS:
            self._note((name, identifier))
        self._open.append(None)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _note(self, item: tuple[str, str]) -> None:
        seen = self._open[-1]
        if seen is None:
            self._open[-1] = {item}
        elif item in seen:
            self._repeated.append(item[1])
        else:
            seen.add(item)


def _in_json(content: bytes) -> list[str]:
    repeated: list[str] = []
    unread: list[object] = [_parsed(content)]
    while unread:
        value = unread.pop()
        if isinstance(value, list):
            repeated += _repeated([each["id"] for each in value if isinstance(each, dict) and "id" in each])
            members: list[object] = value
        elif isinstance(value, dict):
            members = [member for name, member in value.items() if name not in _OTHER_MEMBERS]
        # Last in, first out: reversed, so that the first member is read first.
        unread += [member for member in reversed(members) if isinstance(member, dict | list)]
    return repeated


def _parsed(content: bytes) -> object:
    try:
        value: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        # A number that no double holds is one all the same.
        value = parse_json(content)
    return value


def _repeated(identifiers: list[object]) -> list[str]:
    texts = [each for each in identifiers if isinstance(each, str)]
    if len(set(texts)) == len(texts):
        return []
    seen: set[str] = set()
    return [text for text in texts if text in seen or seen.add(text)]  # type: ignore[func-returns-value]


_DEFAULTS = StructureRuleOptions()
_NAMES_SHOWN = 2


def check(artefact: Artefact, options: StructureRuleOptions = _DEFAULTS) -> list[Violation]:
    """Returns the rules that a structure breaks, in a fixed order."""
    found = RuleFindings(options.severities)
    check_identity(artefact, found)
    if found.includes("schema"):
        _check_schema(artefact, options, found)
    if found.includes("duplicate-item") and artefact.size <= options.largest_items_bytes:
        _check_items(artefact, found)
    return found.violations


def unreadable(error: StructureMessageError) -> list[Violation]:
    """Returns the rule that an unreadable body breaks: an error, because there is nothing to publish."""
    return [Violation("unreadable", "error", error.message)]


def check_alone(artefacts: Sequence[Artefact]) -> list[Violation]:
    """Returns the rule that a body without a structure breaks, or with more than the one of its record's key.

    Of several artefacts, the first two are enough.
    """
    if len(artefacts) == 1:
        return []
    if not artefacts:
        return [Violation("unreadable", "error", "the message holds no structure")]
    return [Violation("one-structure", "error", "the body holds more than one structure")]


def _check_schema(artefact: Artefact, options: StructureRuleOptions, found: RuleFindings) -> None:
    known = len(artefact.findings)
    added = _schemas(options.largest_schema_bytes).marked(artefact).findings[known:]
    invalid = [finding for finding in added if finding.code == "invalid"]
    if invalid:
        found.add("schema", _first_of(invalid))


def _first_of(invalid: Sequence[SplitWarning]) -> str:
    more = len(invalid) - 1
    return invalid[0].message + (f" (and {more} more)" if more else "")


def _check_items(artefact: Artefact, found: RuleFindings) -> None:
    repeated = list(dict.fromkeys(repeated_ids(artefact)))
    if repeated:
        names = ", ".join(map(violation_subject, repeated[:_NAMES_SHOWN]))
        more = f" and {len(repeated) - _NAMES_SHOWN} more" if len(repeated) > _NAMES_SHOWN else ""
        found.add("duplicate-item", f"more than one item in one place has the id {names}{more}")


@lru_cache(4)
def _schemas(largest_bytes: int) -> SchemaValidator:
    # A schema takes a second to load, and each process checks thousands of structures. No structure is at fault for its
    # header.
    return SchemaValidator(largest_bytes=largest_bytes, with_header=False)
