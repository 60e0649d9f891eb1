"""What a publication of Contexture's own events may say: it has no source to choose from, and one form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contexture.publications.defaults import default_of
from contexture.publications.fields import Section
from contexture.publications.problems import ModelProblem
from contexture.publications.source import is_meant

if TYPE_CHECKING:
    from contexture.publications.publication import Publication

Findings = Iterator[ModelProblem]

_KIND = (("source", "kind"),)


def of_operations(publication: Publication) -> Findings:
    """A finding for everything that means nothing or can't be for `kind: operations`."""
    for name in type(publication).model_fields:
        section = getattr(publication, name)
        if isinstance(section, Section):
            yield from _without_meaning(name, section)
    yield from _topics(publication)
    if publication.publish.shards != 1:
        message = f"`shards: {publication.publish.shards}` means nothing for `kind: operations`: events have one order"
        yield ModelProblem(("publish", "shards"), message, "leave it out", _KIND)
    if publication.message.format != "operations":
        message = f"`format: {publication.message.format}` can't tell what Contexture did"
        yield ModelProblem(("message", "format"), message, "leave it out", _KIND)
    if publication.message.envelope == "none":
        message = "`envelope: none`: these events are CloudEvents"
        yield ModelProblem(
            ("message", "envelope"), message, "write cloudevents-binary or cloudevents-structured", _KIND
        )


def of_others(publication: Publication) -> Findings:
    """A finding where another kind of source is to be told in the form of these events."""
    if publication.message.format == "operations":
        message = "`format: operations` needs `kind: operations`"
        yield ModelProblem(("message", "format"), message, "leave it out", _KIND)


def _without_meaning(name: str, section: Section) -> Findings:
    for key in section.model_fields_set:
        # A publication that was written out has every default in it.
        defaults = (type(section).model_fields[key].default, default_of("operations", name, key))
        if not is_meant("operations", name, key) and getattr(section, key) not in defaults:
            yield ModelProblem((name, key), f"`{key}` means nothing for `kind: operations`", "leave it out", _KIND)


def _topics(publication: Publication) -> Findings:
    topics = publication.topics
    if topics.naming != "fixed":
        message = f"`naming: {topics.naming}` makes names of entities; here there are none"
        yield ModelProblem(("topics", "naming"), message, "leave it out, or write `naming: fixed`", _KIND)
    if not topics.topics:
        message = "nothing says where the events go"
        yield ModelProblem(("topics",), message, "add `topics: [NAME]` to the section `topics`", _KIND)
    if topics.keep != "history":
        message = "`keep: latest` would leave the last event of each publication alone"
        yield ModelProblem(("topics", "keep"), message, "leave it out, or write `keep: history`", _KIND)
