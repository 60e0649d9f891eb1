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
_SUFFIX = "_content"


def with_name_files(
    written: object, publication: Publication | None, folder: Path
) -> tuple[Publication | None, list[Finding]]:
    """The publication with the contents of its name files, and what is wrong with them."""
    section = written.get("topics") if isinstance(written, Mapping) else None
    hidden = [f"{key}{_SUFFIX}" for key in _MEMBERS if isinstance(section, Mapping) and f"{key}{_SUFFIX}" in section]
    if hidden:
        return publication, [Finding(("topics", hidden[0]), f"unknown key `{hidden[0]}`", "leave it out", at_key=True)]
    if publication is None:
        return publication, []
    contents, findings = dict[str, str](), list[Finding]()
    for key in _MEMBERS:
        try:
            contents.update(_content(publication, key, folder))
        except ConfigurationError as error:
            findings.append(Finding(("topics", key), error.message, error.next_step))
    topics = publication.topics.model_copy(update=contents)
    return (publication.model_copy(update={"topics": topics}) if contents else publication), findings


def _content(publication: Publication, key: str, folder: Path) -> dict[str, str]:
    name = getattr(publication.topics, key)
    if name is None:
        return {}
    content = documents.canonical(documents.read(folder / name), _MEMBERS[key])
    compat = publication.topics.compat == CYGNUS_2_19
    if key == "grouping_rules":
        GroupingRules.from_json(content, compat=compat)
    else:
        NameMappings.from_json(content, compat=compat)
    return {f"{key}{_SUFFIX}": content}
