"""Every property of a connection for one publication: its value, its default, who sets it, and what it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.publications.source import STRUCTURE_FORM
from contexture.sources.http.connection import BrokerConnection, ConnectionFields, HttpConnection
from contexture.sources.http.content_encoding import ACCEPTED
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.sources.sdmx.registry.connection import REPLY_BYTES

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings

MASK: Final = "***"
_LONGEST: Final = 200
_USER_IN_ADDRESS: Final = re.compile(r"//[^/@]+@")


class PropertyOrigin(StrEnum):
    """Who sets a property."""

    CONNECTION = "connection"
    PUBLICATION = "publication file"
    OURS = "Contexture's default"
    ENFORCED = "enforced by Contexture"
    CLIENT = "default of the Kafka client"
    UNUSED = "not used by Contexture"


@dataclass(frozen=True, slots=True)
class ConnectionProperty:
    """One property.

    Attributes:
        value: in force; `***` for a secret, empty for none.
        default: in force where nothing sets it.
        given_as: the name by which the connection sets it, where that is another one.
        description: what it does, in one line.
    """

    name: str
    value: str
    default: str
    origin: PropertyOrigin
    description: str
    given_as: str = ""


def describe_kafka(settings: ClientSettings, publication: Publication) -> tuple[ConnectionProperty, ...]:
    """Returns all properties of the Kafka client by name, as they are for the senders and readers of a publication.

    No broker is asked, and no store of Java clients is read.

    Raises:
        KafkaConfigurationError: the connection names what the client does not know.
    """
    from contexture.kafka.properties import client_properties

    prefix = publication.publish.transactional_id_prefix
    found = [
        ConnectionProperty(
            name=each.name,
            value=each.value,
            default=each.default,
            origin=PropertyOrigin.ENFORCED if each.is_enforced else _KAFKA_ORIGINS[each.origin],
            description=_first_sentence(each.description),
            given_as=each.given_as,
        )
        for each in client_properties(settings)
    ]
    own = {"transactional.id": f"{prefix}.{publication.name}.<shard>"}
    return tuple(
        replace(
            each,
            value=own[each.name],
            origin=PropertyOrigin.PUBLICATION,
            description=_TRANSACTIONAL_ID,
        )
        if each.name in own
        else each
        for each in found
    )


_KAFKA_ORIGINS: Final[Mapping[str, PropertyOrigin]] = {
    "client": PropertyOrigin.CLIENT,
    "contexture": PropertyOrigin.OURS,
    "connection": PropertyOrigin.CONNECTION,
}
_TRANSACTIONAL_ID: Final = "Names the only living sender of each shard (publish.transactional_id_prefix)"


def _first_sentence(text: str) -> str:
    sentence = text.partition(". ")[0].strip().rstrip(".")
    return sentence if len(sentence) <= _LONGEST else f"{sentence[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class _ExtraKey:
    """A key that the extra of a source's connection may have; `in_force`: its default has an effect at all times."""

    name: str
    description: str
    default: str = ""
    is_secret: bool = False
    in_force: bool = False


_ACCESS: Final = (
    _ExtraKey("authentication", "How we log in: basic, oauth2 or keyrock", "basic", in_force=True),
    _ExtraKey("headers", "Headers of every request, such as tokens or API keys", is_secret=True),
    _ExtraKey("token", "A Bearer token that does not expire", is_secret=True),
    _ExtraKey("token_url", "Where tokens are issued, for oauth2 and keyrock"),
    _ExtraKey("token_header", "The header that carries the token", "Authorization; keyrock: X-Auth-Token"),
    _ExtraKey("client_id", "The client of oauth2", "the login"),
    _ExtraKey("client_secret", "Its secret", "the password", is_secret=True),
    _ExtraKey("scope", "The scope that is requested of oauth2"),
    _ExtraKey("username", "The user of oauth2's password grant; without one the client logs in itself"),
    _ExtraKey("user_password", "The password of that user", is_secret=True),
    _ExtraKey(
        "verify", "Whether its certificate is checked, or the path of a bundle of authorities", "true", in_force=True
    ),
    _ExtraKey("certificate", "Path of our own certificate (PEM), for mutual TLS"),
    _ExtraKey("certificate_key", "Path of its key, where the certificate's file does not contain it"),
    _ExtraKey("certificate_password", "The password of that key", is_secret=True),
)
_OF_REGISTRIES: Final = (
    _ExtraKey("flavour", "The product: auto asks for it; fmr and generic save that request", "auto", in_force=True),
    _ExtraKey("api", "The version of SDMX-REST: auto tries which one responds", "auto", in_force=True),
    _ExtraKey("reply_bytes", "The largest response that is accepted, decoded", str(REPLY_BYTES), in_force=True),
)


def describe_source(
    connection: HttpConnection, fields: ConnectionFields, publication: Publication
) -> tuple[ConnectionProperty, ...]:
    """Returns all properties of the requests to a publication's source; nothing is requested.

    Args:
        connection: as Contexture understands the fields.
        fields: of the Airflow connection.
        publication: whose source it leads to.
    """
    keys = (*_ACCESS, *(_OF_REGISTRIES if isinstance(connection, RegistryConnection) else ()))
    named = {"timeout_seconds", *(key.name for key in keys)}
    return (
        *_of_fields(connection, fields),
        _timeout(connection, fields),
        *_of_publication(publication, fields),
        *(_of_extra(key, fields) for key in keys if not _is_overruled(key, publication)),
        *_enforced(connection),
        *(
            ConnectionProperty(name, MASK, "", PropertyOrigin.UNUSED, "Contexture does not read this key of the extra")
            for name in sorted(fields.extra)
            if name not in named
        ),
    )


def _of_fields(connection: HttpConnection, fields: ConnectionFields) -> Iterator[ConnectionProperty]:
    given = PropertyOrigin.CONNECTION
    about = "Where requests go: schema, host, port and path of the connection"
    yield ConnectionProperty("address", connection.address, "", given, about)
    for name, value, about in (
        ("login", fields.login, "The user of a Basic login, or of keyrock"),
        ("password", MASK if fields.password else "", "Its password"),
    ):
        yield ConnectionProperty(name, value, "", given if value else PropertyOrigin.OURS, about)


def _timeout(connection: HttpConnection, fields: ConnectionFields) -> ConnectionProperty:
    default = f"{_DEFAULT_TIMEOUTS[type(connection)]:g}"
    is_given = fields.extra.get("timeout_seconds") is not None
    origin = PropertyOrigin.CONNECTION if is_given else PropertyOrigin.OURS
    about = "How long the source may send nothing, in seconds, before a request fails and is repeated"
    return ConnectionProperty("timeout_seconds", f"{connection.timeout_seconds:g}", default, origin, about)


_DEFAULT_TIMEOUTS: Final[Mapping[type[HttpConnection], float]] = {
    kind: kind("http://host").timeout_seconds for kind in (HttpConnection, BrokerConnection, RegistryConnection)
}


def _of_extra(key: _ExtraKey, fields: ConnectionFields) -> ConnectionProperty:
    given = fields.extra.get(key.name)
    if given is None or given == "":
        value = key.default if key.in_force else ""
        return ConnectionProperty(key.name, value, key.default, PropertyOrigin.OURS, key.description)
    shown = str(given).lower() if isinstance(given, bool) else _USER_IN_ADDRESS.sub(rf"//{MASK}@", str(given))
    value = _masked(given) if key.is_secret else shown
    return ConnectionProperty(key.name, value, key.default, PropertyOrigin.CONNECTION, key.description)


def _masked(given: object) -> str:
    """Returns the names of headers without their values; of any other secret nothing."""
    return ", ".join(f"{name}: {MASK}" for name in given) if isinstance(given, Mapping) else MASK


def _is_overruled(key: _ExtraKey, publication: Publication) -> bool:
    return key.name == "flavour" and isinstance(publication, SdmxPublication) and publication.source.flavour != "auto"


def _of_publication(publication: Publication, fields: ConnectionFields) -> Iterator[ConnectionProperty]:
    match publication:
        case NgsiPublication(source=source):
            ld = source.api == "ngsi-ld"
            paths = ",".join(source.service_path)
            rows: Sequence[tuple[str, str, str, str, str]] = [
                ("NGSILD-Tenant" if ld else "Fiware-Service", "service", source.service, "", "The tenant that is read"),
                ("scopes" if ld else "Fiware-ServicePath", "service_path", paths, "/#", "What is read of it"),
                ("limit", "page_size", str(source.page_size), "1000", "Entities of one request"),
            ]
        case SdmxPublication(source=source):
            media_type = source.media_type or "SDMX-ML 2.1"
            rows = [("Accept", "media_type", media_type, STRUCTURE_FORM, "The format of structures")]
            if source.flavour != "auto":
                about = f"The product, where the connection has {fields.text('flavour', 'auto')}"
                rows.append(("flavour", "flavour", source.flavour, "auto", about))
        case _:
            return
    for name, key, value, default, about in rows:
        origin = PropertyOrigin.PUBLICATION if key in source.model_fields_set else PropertyOrigin.OURS
        yield ConnectionProperty(name, value, default, origin, f"{about} (source.{key})")


def _enforced(connection: HttpConnection) -> Iterator[ConnectionProperty]:
    proxy = "none, because it is this machine" if connection.is_loopback else "that of the environment"
    for name, value, about in (
        ("method", "GET, POST to query", "Nothing at the source is changed"),
        ("Accept-Encoding", ACCEPTED, "The only encoding whose decoded size we limit while it arrives"),
        ("redirects", "not followed", "Credentials go to no other address than the connection's"),
        ("proxy", proxy, "HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the process that reads"),
    ):
        yield ConnectionProperty(name, value, value, PropertyOrigin.ENFORCED, about)
