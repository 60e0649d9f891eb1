"""The forms a value may have, each as a function from the content of an event to bytes."""

from __future__ import annotations

from collections.abc import Callable

from contexture.events import AttributeName, ContextIdentity
from contexture.messages import cygnus_lines, ngsi_ld, ngsiv1, ngsiv2
from contexture.messages.content import BodyMaker, Content, Form
from contexture.ngsi.linked_data.attributes import instance_key
from contexture.publications import Publication
from contexture.topics import TopicNamer

ServiceOf = Callable[[ContextIdentity, "str | None"], str]


def body_makers(publication: Publication, namer: TopicNamer) -> dict[str, BodyMaker]:
    """The makers of a publication's bodies, by `message.format`."""
    return {
        "ngsiv2": _ngsiv2,
        "cygnus-lines": cygnus_line_maker(namer.header_service),
        "ngsiv1": _ngsiv1,
        "ngsi-ld": ngsi_ld_maker(publication.source.context),
    }


def cygnus_line_maker(service_of: ServiceOf) -> BodyMaker:
    """The maker of Cygnus' lines.

    Args:
        service_of: the service that a line's header tells, from the identity and the attribute's name: the mapped one
            where name mappings are on. Path and body are the original ones either way, as in Cygnus.
    """

    def make(content: Content) -> bytes:
        identity, attribute = content.identity, content.attribute
        return cygnus_lines.line(
            service=service_of(identity, attribute.name if attribute is not None else None),
            service_path=identity.service_path,
            timestamp_ms=content.received_at_ms,
            entity=content.entity,
            attribute=_member(attribute),
            context_element=content.context_element,
        )

    return make


def ngsi_ld_maker(context: str | None) -> BodyMaker:
    """The maker of NGSI-LD entities; `context` is the address of the @context the source's names are compacted by."""

    def make(content: Content) -> bytes:
        return ngsi_ld.body(content.entity, content.linked_data, content.attribute, context=context)

    return make


def _ngsiv2(content: Content) -> bytes:
    name = _member(content.attribute)
    return ngsiv2.body(content.entity if name is None else _only(content.entity, name))


def _ngsiv1(content: Content) -> bytes:
    return ngsiv1.body(content.entity, _member(content.attribute), content.context_element)


def _only(entity: Form, name: str) -> dict[str, object]:
    return {member: entity[member] for member in ("id", "type", name) if member in entity}


def _member(attribute: AttributeName | None) -> str | None:
    """The name under which the attribute stands in the NGSIv2 form; each instance of NGSI-LD has its own."""
    return None if attribute is None else instance_key(attribute.name, attribute.dataset_id)
