"""A parsed notification, its headers, and the error of one that is refused.

The rules of the headers are those of Cygnus' HTTP handler where a subscriber depends on them (defaults, positional
paths, a single path for all entities, the correlator as it came); where the handler refuses what a broker may send, or
takes what can't be right, this differs: spaces around paths are trimmed, a path may be as deep as Orion allows (10
levels of 50 characters), and a wildcard is no path of an entity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from contexture.errors import RejectedError
from contexture.events import Operation

BAD_REQUEST = 400
TOO_LARGE = 413
UNSUPPORTED_MEDIA = 415


class NotificationError(RejectedError):
    """The notification cannot be accepted as it is, and sending it again is useless; nothing of it was stored."""

    @property
    def status(self) -> int:
        return int(str(self.context.get("status", BAD_REQUEST)))


def refused(message: str, next_step: str, status: int = BAD_REQUEST) -> NotificationError:
    """Returns the error that leads to a response with `status`."""
    return NotificationError(message, next_step=next_step, status=status)


Form = Literal["ngsiv1", "ngsiv2", "ngsi-ld"]


@dataclass(frozen=True, slots=True)
class NotifiedEntity:
    """One entity of a notification.

    Attributes:
        operation: `delete` when the broker reported that the entity was deleted.
        service_path: of the entity, from the notification's header.
        id, type: those of the entity; empty where it has none.
        body: the entity as JSON, number literals as they were sent: an NGSIv1 context element as it was received, an
            NGSIv2 entity without the builtin `alterationType`, an NGSI-LD entity with the notification's `@context`.
    """

    operation: Operation
    service_path: str
    id: str
    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Notification:
    """The content of one request.

    Attributes:
        form: of the request.
        service: the tenant, as in the header (not lower-cased), or the default.
        correlator: the header `Fiware-Correlator` as it was sent; None without one.
        subscription: the id of the subscription, where the request contains it.
        entities: in the order they were sent.
    """

    form: Form
    service: str
    correlator: str | None
    subscription: str | None
    entities: tuple[NotifiedEntity, ...]


_PREFIX = "application/json; notified="
_FORMS = {f"{_PREFIX}{form}": form for form in get_args(Form)}


def media_type_of(form: Form) -> str:
    """Returns the media type of a row whose body was notified in this form."""
    return f"{_PREFIX}{form}"


def notified_form(media_type: str) -> Form | None:
    """Returns the form in which a row's body was notified; None when it was not notified."""
    return _FORMS.get(media_type)


MAXIMUM_SERVICE_CHARACTERS = 50
MAXIMUM_LEVELS = 10
MAXIMUM_LEVEL_CHARACTERS = 50
DEFAULT_SERVICE = "default"
DEFAULT_SERVICE_PATH = "/"

_UTF_8 = frozenset({"utf-8", "utf8", "us-ascii"})
_NORMALIZED = frozenset({"normalized", "simplifiednormalized", "x-ngsiv2-normalized"})
_LOSSY = frozenset({"keyvalues", "simplifiedkeyvalues", "values", "uniquevalues", "custom", "x-ngsiv2-keyvalues"})
_LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class NotificationHeaders:
    """The headers that describe the entities.

    Attributes:
        service_paths: one for all entities, or one for each in order.
        legacy: None where the form shows in the body alone; True for NGSIv1, False for NGSIv2.
        context: the address in the `Link` header of NGSI-LD.
    """

    service: str
    service_paths: tuple[str, ...]
    correlator: str | None
    legacy: bool | None
    context: str | None

    def paths_for(self, entities: int) -> tuple[str, ...]:
        """Returns the service path of each entity.

        Raises:
            NotificationError: there are several paths, but not one for each entity.
        """
        if len(self.service_paths) == 1:
            return self.service_paths * entities
        if len(self.service_paths) != entities:
            raise refused(
                f"Fiware-ServicePath has {len(self.service_paths)} paths for {entities} entities",
                "send one path for all entities, or one for each in their order",
            )
        return self.service_paths


def read_headers(
    headers: Mapping[str, str],
    *,
    default_service: str = DEFAULT_SERVICE,
    default_service_path: str = DEFAULT_SERVICE_PATH,
) -> NotificationHeaders:
    """Reads the headers, whose names are in any case.

    Raises:
        NotificationError: one of them breaks a rule; `status` is that of the HTTP response.
    """
    given = {name.lower(): value for name, value in headers.items()}
    _check_media_type(given.get("content-type"))
    service = given.get("fiware-service", given.get("ngsild-tenant", default_service))
    if len(service) > MAXIMUM_SERVICE_CHARACTERS:
        raise refused(
            f"Fiware-Service has {len(service)} characters, more than {MAXIMUM_SERVICE_CHARACTERS}",
            "use a service that the broker allows",
        )
    return NotificationHeaders(
        service=service,
        service_paths=_service_paths(given.get("fiware-servicepath", default_service_path)),
        correlator=given.get("fiware-correlator"),
        legacy=_is_legacy(given.get("ngsiv2-attrsformat")),
        context=_linked_context(given.get("link", "")),
    )


def _check_media_type(content_type: str | None) -> None:
    if content_type is None:
        return
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise refused(f"Content-Type {kind[:80]!r} is not JSON", "send application/json", UNSUPPORTED_MEDIA)
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in _UTF_8:
            raise refused(f"the charset {value[:40]!r} is not UTF-8", "send charset=utf-8", UNSUPPORTED_MEDIA)


def _service_paths(header: str) -> tuple[str, ...]:
    items = [item.strip() for item in header.split(",")]
    while items and not items[-1]:
        items.pop()
    if not items:
        raise refused("Fiware-ServicePath is empty", "leave the header out, or send a path such as /")
    return tuple(_service_path(item) for item in items)


def _service_path(path: str) -> str:
    if not path.startswith("/"):
        raise refused(f"the service path {path[:60]!r} does not start with /", "send absolute paths")
    levels = path.removesuffix("/").split("/")[1:]
    if len(levels) > MAXIMUM_LEVELS:
        raise refused(f"a service path has {len(levels)} levels", f"send at most {MAXIMUM_LEVELS}")
    for level in levels:
        if not level or len(level) > MAXIMUM_LEVEL_CHARACTERS:
            what = f"has a level of {len(level)} characters"
            raise refused(f"the service path {path[:60]!r} {what}", f"use 1 to {MAXIMUM_LEVEL_CHARACTERS} for each")
        if "#" in level or not level.isprintable():
            raise refused(f"{path[:60]!r} is not a service path of an entity", "send the path that the entity is in")
    return "/" + "/".join(levels)


def _is_legacy(attrs_format: str | None) -> bool | None:
    if attrs_format is None:
        return None
    wanted = attrs_format.strip().lower()
    if wanted == _LEGACY:
        return True
    if wanted in _NORMALIZED:
        return False
    why = "has no types and no metadata, so" if wanted in _LOSSY else "is not known:"
    raise refused(
        f"Ngsiv2-AttrsFormat {attrs_format[:40]!r} {why} entities cannot be read from it",
        "set notification.attrsFormat of the subscription to normalized",
    )


def _linked_context(link: str) -> str | None:
    for item in link.split(","):
        address, _, parameters = item.strip().partition(">")
        if address.startswith("<") and "json-ld#context" in parameters:
            return address[1:].strip() or None
    return None
