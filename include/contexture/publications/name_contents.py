"""The files of grouping rules and name mappings travel in the publication, so that Spark's tasks need no file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.publications.findings import Finding
from contexture.publications.name_files import GroupingRules, NameMappings, documents, grouping, mappings
from contexture.publications.publication import Publication
from contexture.publications.topics import CYGNUS_2_19

_MEMBERS = {"grouping_rules": grouping.MEMBER, "name_mappings": mappings.MEMBER}
_KEYS = {*_MEMBERS, "compat"}
_SUFFIX = "_content"


def with_name_files(
    written: object, publication: Publication | None, folder: Path
) -> tuple[Publication | None, list[Finding]]:
    """The publication with the contents of its name files, and what is wrong with them."""
    section = written.get("topics") if isinstance(written, Mapping) else None
    hidden = [f"{key}{_SUFFIX}" for key in _MEMBERS if isinstance(section, Mapping) and f"{key}{_SUFFIX}" in section]
    if hidden:
        return publication, [Finding(("topics", hidden[0]), f"unknown key `{hidden[0]}`", "leave it out", at_key=True)]
    # What is wrong in these files is told also where the publication is wrong elsewhere.
    names = section if publication is None else publication.topics.model_dump(include=_KEYS)
    contents, findings = _contents(names if isinstance(names, Mapping) else {}, folder)
    if publication is None:
        return None, findings
    topics = publication.topics.model_copy(update=contents)
    return (publication.model_copy(update={"topics": topics}) if contents else publication), findings


def _contents(names: Mapping[str, object], folder: Path) -> tuple[dict[str, str], list[Finding]]:
    contents, findings = dict[str, str](), list[Finding]()
    for key in _MEMBERS:
        name = names.get(key)
        if not isinstance(name, str) or not name:
            continue
        try:
            contents[f"{key}{_SUFFIX}"] = _content(key, folder / name, compat=names.get("compat") == CYGNUS_2_19)
        except ConfigurationError as error:
            findings.append(Finding(("topics", key), error.message, error.next_step))
    return contents, findings


def _content(key: str, path: Path, *, compat: bool) -> str:
    content = documents.canonical(documents.read(path), _MEMBERS[key])
    if key == "grouping_rules":
        GroupingRules.from_json(content, compat=compat)
    else:
        NameMappings.from_json(content, compat=compat)
    return content
