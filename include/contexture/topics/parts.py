"""What a topic name is made of, by data model: the parts of an identity, and the attribute."""

from __future__ import annotations

from contexture.errors import DefectError
from contexture.events import ContextIdentity
from contexture.topics.legality import TopicNameError

DATA_MODELS: dict[str, int] = {"dm-by-service": 1, "dm-by-service-path": 2, "dm-by-entity": 4, "dm-by-attribute": 5}
"""How many of service, path, id, type and attribute a name of each data model holds."""


def name_parts(data_model: str, identity: ContextIdentity, attribute: str | None) -> tuple[str, ...]:
    """Service, path, id, type and attribute, as far as the data model's names hold them.

    Raises:
        TopicNameError: the identity has neither id nor type, or the attribute no name.
    """
    wanted = DATA_MODELS[data_model]
    parts = (identity.service, identity.service_path, identity.id, identity.type)
    if wanted > 2 and not identity.id and not identity.type:
        raise TopicNameError(
            "an entity without id and type has no topic", next_step="correct it in its source", identity=identity
        )
    return (*parts, named(attribute, identity)) if wanted > len(parts) else parts[:wanted]


def named(attribute: str | None, identity: ContextIdentity) -> str:
    """The attribute's name, where names of topics need one.

    Raises:
        TopicNameError: the name is empty.
    """
    if attribute is None:
        raise DefectError(
            "dm-by-attribute names topics of attributes, but none was given",
            next_step="report this with the publication's topics",
            identity=identity,
        )
    if not attribute:
        raise TopicNameError(
            "an attribute without a name has no topic", next_step="name the attribute in its source", identity=identity
        )
    return attribute
