"""Changes to a file of grouping rules: list, add, update, delete, as the REST interface of Cygnus does them.

Each change checks the file before and after it, and replaces the file at once: a reader sees the old or the new rules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from contexture.errors import ConfigurationError
from contexture.publications.cygnus_names import files
from contexture.publications.cygnus_names.grouping import MEMBER, GroupingRules


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A grouping rule as its file has it.

    Attributes:
        id: its number; Cygnus gives it, and so does `add_rule`.
        fields: the parts of an entity's identity that are joined: entityId, entityType, servicePath.
        regex: the Java expression that the joined parts match as a whole.
        destination: the entity part of the topic's name.
        fiware_service_path: the service path of the topic's name.
    """

    id: int
    fields: tuple[str, ...]
    regex: str
    destination: str
    fiware_service_path: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The outcome of a change.

    Attributes:
        rule: the rule that was added, changed or deleted.
        rules: how many the file has now.
        lost_comments: the comment lines between the rules, which a change of the file leaves out.
    """

    rule: WrittenRule
    rules: int
    lost_comments: int


def read_rules(path: Path) -> tuple[WrittenRule, ...]:
    """Returns the rules of a file, in its order.

    Raises:
        ConfigurationError: the file cannot be read, a rule is wrong, has unknown members, or an id is there twice.
    """
    return _parsed(files.read(path))


def add_rule(path: Path, rule: WrittenRule) -> RuleChange:
    """Adds a rule at the end of the file, which is made where there is none; its id is the highest plus one.

    Raises:
        ConfigurationError: the rule or the file is wrong, or the file cannot be written.
    """
    text = files.read(path) if path.exists() else ""
    rules = _parsed(text) if text else ()
    added = replace(rule, id=max((each.id for each in rules), default=0) + 1)
    return _written(path, text, (*rules, added), added)


def update_rule(path: Path, number: int, changes: Mapping[str, Any]) -> RuleChange:
    """Changes members of the rule with this id; it keeps its place in the order.

    Raises:
        ConfigurationError: there is no such rule, the result is wrong, or the file cannot be written.
    """
    text = files.read(path)
    rules = _parsed(text)
    changed = replace(_found(path, rules, number), **changes)
    return _written(path, text, tuple(changed if each.id == number else each for each in rules), changed)


def delete_rule(path: Path, number: int) -> RuleChange:
    """Removes the rule with this id.

    Raises:
        ConfigurationError: there is no such rule, or the file cannot be written.
    """
    text = files.read(path)
    rules = _parsed(text)
    gone = _found(path, rules, number)
    return _written(path, text, tuple(each for each in rules if each.id != number), gone)


def _parsed(text: str) -> tuple[WrittenRule, ...]:
    """Returns the rules of a text; stricter than a run, as the REST interface of Cygnus is: no unknown members."""
    GroupingRules.from_json(text)
    known = set(WrittenRule.__dataclass_fields__)
    rules = []
    for number, item in enumerate(files.parse(text, MEMBER), start=1):
        assert isinstance(item, dict)  # checked above
        if others := sorted(set(item) - known):
            raise ConfigurationError(
                f"grouping rule {number} has the unknown member {others[0]!r}",
                next_step=f"remove it; a rule has {', '.join(WrittenRule.__dataclass_fields__)}",
            )
        rules.append(WrittenRule(**{**item, "fields": tuple(item["fields"])}))
    ids = [each.id for each in rules]
    if twice := sorted({each for each in ids if ids.count(each) > 1}):
        raise ConfigurationError(
            f"the file has two grouping rules with the id {twice[0]}", next_step="give one of them another id"
        )
    return tuple(rules)


def _found(path: Path, rules: tuple[WrittenRule, ...], number: int) -> WrittenRule:
    found = next((each for each in rules if each.id == number), None)
    if found is None:
        ids = ", ".join(str(each.id) for each in rules) or "none"
        raise ConfigurationError(f"{path} has no grouping rule {number}", next_step=f"choose one of its ids: {ids}")
    return found


def _written(path: Path, before: str, rules: tuple[WrittenRule, ...], rule: WrittenRule) -> RuleChange:
    lines = before.splitlines()
    comments = [line for line in lines if line.lstrip().startswith("#")]
    head = list(_head(lines))
    text = "".join(f"{line}\n" for line in (*head, *_document(rules)))
    _parsed(text)
    _replace(path, text)
    return RuleChange(rule, len(rules), len(comments) - sum(line in comments for line in head))


def _head(lines: list[str]) -> Iterator[str]:
    """Yields the comments above the first brace, which stay."""
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            return
        yield line


def _document(rules: tuple[WrittenRule, ...]) -> Iterator[str]:
    """Yields the lines of the file: a line for each rule, so that a version control shows what changed."""
    yield f'{{"{MEMBER}": ['
    for number, rule in enumerate(rules, start=1):
        yield f"  {json.dumps(asdict(rule), ensure_ascii=False)}{',' if number < len(rules) else ''}"
    yield "]}"


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ConfigurationError(
            f"{path} cannot be written: {os.strerror(error.errno or 0)}",
            next_step="check the folder and its permissions",
        ) from None
