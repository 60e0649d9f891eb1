"""YAML as publications use it: plain values, each with its place in the file.

Read from the parser's events, without PyYAML's constructors: nothing is ever executed, nesting and size are bounded,
aliases are refused, a repeated key is reported, and `off` is a word (YAML 1.2), not False.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml.events import AliasEvent, Event, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from contexture.publications.problems import Location

# libyaml where PyYAML was built with it, else the same parser in Python.
_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_BYTES = 256 * 1024
_MAX_DEPTH = 20
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_INTEGER = re.compile(r"^[-+]?[0-9]{1,18}$")
_FLOAT = re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$")
_WORDS: dict[str, object] = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def quote(text: str) -> str:
    """Returns a text as a quoted YAML scalar on one line."""
    # JSON's strings are YAML's, except characters beyond the first 65,536. What shows nothing is written as its code.
    signs = (sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in json.dumps(text, ensure_ascii=False))
    return "".join(signs)


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A place in a file: line and column from 1, and a length in characters."""

    line: int
    column: int
    length: int = 1


class YamlError(Exception):
    """The text is no YAML that a publication may use."""

    def __init__(self, message: str, hint: str, span: SourceSpan | None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.span = span


@dataclass(slots=True)
class YamlDocument:
    """The value of a YAML text, the places of its keys and values, and the keys that stand twice."""

    value: object = None
    repeated: list[YamlError] = field(default_factory=list)
    keys: dict[Location, SourceSpan] = field(default_factory=dict)
    values: dict[Location, SourceSpan] = field(default_factory=dict)

    def span(self, location: Location, *, of_key: bool = False) -> SourceSpan | None:
        """Returns the place of a key or value, or of the nearest thing around it."""
        for end in range(len(location), 0, -1):
            places = (self.keys, self.values) if of_key or end < len(location) else (self.values, self.keys)
            for place in places:
                if location[:end] in place:
                    return place[location[:end]]
        return None


def parse(text: str) -> YamlDocument:
    """Returns the single document of a YAML text.

    Raises:
        DocumentError: no YAML, more than one document, an alias, a tag, or too deep.
    """
    document = YamlDocument()
    try:
        events = _events(text)
        first = next(events, None)
        if first is not None:
            document.value = _value(first, events, (), document)
            extra = next(events, None)
            if extra is not None:
                raise YamlError("a second document begins here", "one file is one publication", _span(extra))
    except yaml.MarkedYAMLError as error:
        raise _translated(error) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not readable as YAML: {error}", "save the file as UTF-8 text", None) from None
    return document


def _events(text: str) -> Iterator[Event]:
    parser = _Parser(text)
    structural = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)
    depth = 0
    while (event := parser.get_event()) is not None and not isinstance(event, yaml.StreamEndEvent):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise YamlError(f"nested deeper than {_MAX_DEPTH} levels", "no publication needs that", _span(event))
        if not isinstance(event, structural):
            yield event


def _value(event: Event, events: Iterator[Event], location: Location, document: YamlDocument) -> object:
    document.values[location] = _span(event)
    if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
        raise YamlError("anchors and aliases (& and *) are not supported", "write the value out", _span(event))
    tag = getattr(event, "tag", None)
    if tag is not None and tag != "!":
        raise YamlError(f"the tag {tag} is not supported", "write a plain value", _span(event))
    if isinstance(event, MappingStartEvent):
        return _mapping(events, location, document)
    if isinstance(event, SequenceStartEvent):
        return _sequence(events, location, document)
    return _scalar(event) if isinstance(event, ScalarEvent) else None


def _mapping(events: Iterator[Event], location: Location, document: YamlDocument) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for event in events:
        if not isinstance(event, ScalarEvent):
            if isinstance(event, yaml.MappingEndEvent):
                break
            raise YamlError("a key must be a word", "put the text in quotes", _span(event))
        key = event.value
        if key in mapping:
            first = document.keys[(*location, key)].line
            message = f"the key `{key}` is there twice, first on line {first}"
            document.repeated.append(YamlError(message, "leave one out", _span(event)))
        document.keys[(*location, key)] = _span(event)
        mapping[key] = _value(next(events), events, (*location, key), document)
    return mapping


def _sequence(events: Iterator[Event], location: Location, document: YamlDocument) -> list[object]:
    items: list[object] = []
    for event in events:
        if isinstance(event, SequenceEndEvent):
            break
        items.append(_value(event, events, (*location, len(items)), document))
    return items


def _scalar(event: ScalarEvent) -> object:
    text: str = event.value
    is_plain = event.implicit[0]
    if not is_plain:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _NULL.match(text):
        return None
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text


def _span(event: Event) -> SourceSpan:
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:
        return SourceSpan(1, 1)
    one_line = start.line == end.line and isinstance(event, ScalarEvent)
    return SourceSpan(start.line + 1, start.column + 1, max(1, end.column - start.column) if one_line else 1)


def _translated(error: yaml.MarkedYAMLError) -> YamlError:
    mark = error.problem_mark or error.context_mark
    span = SourceSpan(mark.line + 1, mark.column + 1) if mark else None
    message = " ".join(part for part in (error.problem, error.context) if part)
    return YamlError(f"not readable as YAML: {message}", "check indentation, quotes and colons around here", span)
