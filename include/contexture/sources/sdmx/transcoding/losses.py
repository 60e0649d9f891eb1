"""What a converted structure no longer contains.

A fact is something with a value: an item with its id, a name in a language, a reference, an attribute. Their place is
no part of them, because formats differ in that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from contexture.sources.sdmx.splitting.artefact import Artefact

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
ENGLISH = "en"
"""The language of a text in SDMX-ML that names none."""


def tree(message: bytes) -> Any:
    """Parses a message without comments and processing instructions; returns the root element.

    Raises:
        SyntaxError: it is no well-formed XML, or has a DOCTYPE.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True, remove_pis=True
    )
    return etree.fromstring(message, parser)


def text_of(root: Any) -> bytes:
    """Returns a tree as a document in UTF-8."""
    from lxml import etree

    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))


def unicode_of(root: Any) -> str:
    """Returns a tree as text, without a declaration."""
    from lxml import etree

    return str(etree.tostring(root, encoding="unicode"))


def local(name: str) -> str:
    """Returns the name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]


def namespace(name: str) -> str:
    """Returns the namespace of a name; empty where it has none."""
    return name.rpartition("}")[0].removeprefix("{")


_XSI = "http://www.w3.org/2001/XMLSchema-instance"

_TEXT_ELEMENTS = {"Name": "name", "Description": "description", "AnnotationText": "annotation text"}
_TEXT_MEMBERS = {"name": "names", "description": "descriptions", "text": "texts"}
_ANNOTATION_ELEMENTS = {
    "AnnotationTitle": "annotation title",
    "AnnotationType": "annotation type",
    "AnnotationURL": "annotation link",
    "AnnotationValue": "annotation value",
}
_IDENTITY = frozenset({"id", "agencyID", "agencyId", "version"})
_DERIVED = frozenset({"urn", "position"})
"""What follows from ids and order."""
_FIXED_IDS = frozenset({"AttributeDescriptor", "DimensionDescriptor", "MeasureDescriptor"})
_DEFAULTS = frozenset({("assignmentStatus", "Conditional"), ("usage", "optional")})
"""Defaults of the schemas; SDMX 3.0 has another name for one of them than 2.1."""
_MOMENT = re.compile(r"(\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.0+)?(?:Z|\+00:00)?")
_URN = "urn:sdmx:"


class Fact(NamedTuple):
    """One thing that a structure contains.

    Attributes:
        what: a word for people, such as `code`, `parent`, `annotation text`.
        value: its content.
        language: of a text; empty where it is not known, and for everything that is no text.
    """

    what: str
    value: str
    language: str = ""

    @property
    def is_text(self) -> bool:
        """Whether it is written for people, in some language."""
        return self.what in _TEXTS

    @property
    def label(self) -> str:
        """What it is, without its content."""
        return f"{self.what}[{self.language}]" if self.language else self.what


_TEXTS = frozenset({*_TEXT_ELEMENTS.values(), *(f"annotation {name}" for name in _TEXT_MEMBERS), "text"})


def facts(artefact: Artefact) -> Counter[Fact]:
    """Returns all facts of a structure except its own identity, defaults, and what follows from ids and order."""
    found = _in_json(artefact) if artefact.format.is_json else _in_xml(artefact)
    return Counter(fact for fact in found if not _is_default(fact))


def _is_default(fact: Fact) -> bool:
    is_off = fact.what.startswith("is") and fact.value == "false"
    return is_off or fact.value in _FIXED_IDS or (fact.what, fact.value) in _DEFAULTS


def _in_xml(artefact: Artefact) -> Iterator[Fact]:
    for child in tree(artefact.message()):
        if local(child.tag) != "Header":
            for element in child.iter():
                yield from _of_element(element)


def _of_element(element: Any) -> Iterator[Fact]:
    name = local(element.tag)
    if name == "Ref":
        yield _of_ref(element)
        return
    is_maintainable = "agencyID" in element.attrib
    for attribute, value in element.attrib.items():
        if attribute in _DERIVED or attribute == LANGUAGE or namespace(attribute) == _XSI:
            continue
        if not (is_maintainable and attribute in _IDENTITY):
            yield _scalar(_owned_id(name) if attribute == "id" else local(attribute), value)
    yield from _of_text(element, name)


def _of_text(element: Any, name: str) -> Iterator[Fact]:
    text = " ".join((element.text or "").split())
    if len(element) or (name == "URN" and element.getparent().find("{*}Ref") is not None):
        return
    if name in _TEXT_ELEMENTS or element.get(LANGUAGE) is not None:
        yield Fact(_TEXT_ELEMENTS.get(name, "text"), text, element.get(LANGUAGE, ENGLISH))
    elif text:
        yield _scalar(_ANNOTATION_ELEMENTS.get(name, _word(name)), text)


def _of_ref(element: Any) -> Fact:
    given: Mapping[str, str] = element.attrib
    identifier, agency = given.get("id", ""), given.get("agencyID")
    parent = given.get("maintainableParentID")
    if agency is None:
        return Fact(_word(local(element.getparent().tag)), identifier)
    if parent is None:
        return Fact("reference", f"{agency}:{identifier}({given.get('version', '1.0')})")
    version = given.get("maintainableParentVersion", "1.0")
    return Fact("reference", f"{agency}:{parent}({version}).{identifier}")


def _in_json(artefact: Artefact) -> Iterator[Fact]:
    value = orjson.loads(artefact.content)
    yield from _of_members({name: each for name, each in value.items() if name not in _IDENTITY}, "")


def _of_members(members: Mapping[str, Any], owner: str) -> Iterator[Fact]:
    about = f"{owner} " if owner == "annotation" else ""
    for name, value in members.items():
        if name in _TEXT_MEMBERS and isinstance(value, str):
            if _TEXT_MEMBERS[name] not in members:
                yield Fact(f"{about}{name}", " ".join(value.split()))
        elif name in _TEXT_MEMBERS.values() and isinstance(value, dict):
            for language, text in value.items():
                yield Fact(f"{about}{name[:-1]}", " ".join(str(text).split()), language)
        elif name == "links" and isinstance(value, list):
            yield from (Fact(f"{about}link", str(each["href"])) for each in value if _is_outward(each))
        elif name not in _DERIVED:
            yield from _of_member(name, value, owner, about)


def _of_member(name: str, value: Any, owner: str, about: str) -> Iterator[Fact]:
    if isinstance(value, dict):
        yield from _of_members(value, name)
    elif isinstance(value, list):
        for each in value:
            yield from _of_member(_singular(name), each, owner, about)
    elif value is not None:
        what = _owned_id(owner or name) if name == "id" else f"{about}{name}"
        yield _scalar(what, str(value).lower() if isinstance(value, bool) else str(value))


def _is_outward(link: Any) -> bool:
    return isinstance(link, dict) and bool(link.get("href")) and not link.get("urn")


def _scalar(what: str, value: str) -> Fact:
    text = value.strip()
    if text.startswith(_URN):
        return Fact("reference", text.partition("=")[2])
    moment = _MOMENT.fullmatch(text)
    return Fact(what, moment[1] if moment else text)


def _owned_id(owner: str) -> str:
    """Returns what an id is: the kind of its owner; that of a remark is one of its parts."""
    return "annotation id" if _word(owner) == "annotation" else _word(owner)


def _word(name: str) -> str:
    return name[:1].lower() + name[1:]


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Losses:
    """How many facts are missing, by what they are: `{"name[fr]": 6, "parent": 2}`; in the order of the names."""

    counts: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        """Such as `name[fr] 6, parent 2`: names and numbers, and no content."""
        text = ", ".join(f"{what} {count}" for what, count in self.counts.items())
        return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def losses(source: Artefact, result: Artefact) -> Losses:
    """Returns what one document contains and the other does not.

    Formats have different names for one thing (`assignmentStatus="Mandatory"` became `usage="mandatory"`), so a value
    under another name is not lost. A text has to be of the same sort, and in the same language, or in none.
    """
    said, kept = facts(source), facts(result)
    lost, new = said - kept, kept - said
    missing = [*_missing_texts(lost, new), *_missing_values(lost, new)]
    return Losses(dict(sorted(Counter(fact.label for fact in missing).items())))


def _missing_texts(lost: Counter[Fact], new: Counter[Fact]) -> Iterable[Fact]:
    # What of a text has no language in one document may have any in the other.
    unlabelled, all_ = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for fact, count in new.items():
        if fact.is_text:
            all_[fact.what, fact.value] += count
            unlabelled[fact.what, fact.value] += 0 if fact.language else count
    for fact in lost.elements():
        if fact.is_text:
            fitting = unlabelled if fact.language else all_
            if fitting[fact.what, fact.value] > 0:
                fitting[fact.what, fact.value] -= 1
            else:
                yield fact


def _missing_values(lost: Counter[Fact], new: Counter[Fact]) -> Iterable[Fact]:
    renamed: Counter[str] = Counter()
    for fact, count in new.items():
        if not fact.is_text:
            renamed[fact.value.casefold()] += count
    for fact in lost.elements():
        if not fact.is_text:
            if renamed[fact.value.casefold()] > 0:
                renamed[fact.value.casefold()] -= 1
            else:
                yield fact
