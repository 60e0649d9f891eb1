"""The section `source`: what is read, and from where; which keys belong to which kind of source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from contexture.publications.bounded_patterns import BoundedPattern
from contexture.publications.fields import (
    ConnectionId,
    Count,
    Flag,
    OneOrMany,
    Positive,
    Section,
    SelectorText,
    Service,
    ServicePaths,
    Share,
    Text,
    Texts,
)

SourceKind = Literal["ngsi", "sdmx", "operations"]

REGISTRY_ONLY: Mapping[str, tuple[str, ...]] = {
    "source": ("select", "media_type", "registrations"),
    "topics": ("routes",),
    "message": ("media_type", "allow_lossy"),
}

BROKER_ONLY: Mapping[str, tuple[str, ...]] = {
    "source": (
        "api",
        "context",
        "service_path",
        "types",
        "ids",
        "id_pattern",
        "type_pattern",
        "query",
        "metadata_query",
        "attributes",
        "georel",
        "geometry",
        "coords",
        "notifier_connection",
        "page_size",
        "overlap_seconds",
        "suppress_unchanged",
        "service",
    ),
    "topics": (
        "cygnus_version",
        "data_model",
        "enable_lowercase",
        "compat",
        "enable_grouping",
        "grouping_rules",
        "enable_name_mappings",
        "name_mappings",
        "collision",
    ),
    "batches": ("batch_size", "batch_timeout"),
    "publish": ("transaction_records",),
    "quality": (
        "required_attributes",
        "attribute_types",
        "ranges",
        "fresh_within_seconds",
        "allowed_values",
        "stale_after_seconds",
        "syntax",
        "coerce_numbers",
        "allow_intervals",
        "models",
    ),
}

FOR_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "": ("name", "description", "schedule"),
    "source": ("kind",),
    "topics": ("naming", "topics", "partitions", "replication_factor", "keep", "config", "max_new_topics"),
    "batches": ("batch_ttl", "batch_retry_intervals"),
    "message": ("format", "envelope"),
    "publish": ("connection", "transaction_records", "transactional_id_prefix", "broker_wait_seconds"),
    "resync": ("on_startup", "on_config_change"),
    "retention": ("archive_days",),
    "notify": ("mail", "notifiers", "published_within_minutes"),
}
"""The keys that mean something for Contexture's own events, by section; all others don't."""


def is_meant(kind: SourceKind, section: str, key: str) -> bool:
    """Whether a key of a section means something for a source of that kind."""
    if kind == "operations":
        return key in FOR_OPERATIONS.get(section, ())
    foreign = BROKER_ONLY if kind == "sdmx" else REGISTRY_ONLY
    return key not in foreign.get(section, ())


_ADDRESS = re.compile(r"https?://[!#-;=?-~]+")
_WALKED = frozenset({"dateCreated", "dateModified"})
_BUILTINS = frozenset({"dateExpires", "servicePath"})
_STATEMENT = re.compile(r"(?:[^;']|'[^']*'?)+")
_WORD = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf'{_WORD}/{_WORD}(\s*;\s*{_WORD}=("[\w.+ -]+"|{_WORD}))*')
_NAME = re.compile(r"\s*+!?\s*+'?([A-Za-z_]+)")


def _check_pattern(pattern: str) -> str:
    # A broker answers a wrong pattern with an empty list (measured), which looks like an empty city.
    try:
        BoundedPattern.compiled(pattern)
    except ValueError as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    if "(?" in pattern:
        raise ValueError(f"{pattern!r}: brokers take POSIX extended expressions, which have no (?...) groups")
    return pattern


def _check_context(address: str) -> str:
    # It stands in a header, between < and >.
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"{address!r} is no address of a @context: write http(s)://... without spaces and quotes")
    return address


def _check_query(query: str) -> str:
    for statement in _STATEMENT.findall(query):
        name = _NAME.match(statement)
        # A walk goes along these times; a second condition on one of them makes the broker forget the first.
        if name and name[1] in _WALKED:
            raise ValueError(f"{statement.strip()!r}: a walk of the source needs {name[1]} for itself; leave it out")
        # Measured: `q=dateExpires` matches nothing and `q=!dateExpires` everything, without an error.
        if statement.strip().removeprefix("!") in _BUILTINS:
            raise ValueError(f"brokers answer {statement.strip()!r} wrongly without an error: compare it with a value")
    return query


def _check_media_type(text: str) -> str:
    # It stands in a header.
    if not _MEDIA_TYPE.fullmatch(text):
        hint = "write type/subtype;version=..., as in application/vnd.sdmx.structure+xml;version=2.1"
        raise ValueError(f"{text!r} is no media type: {hint}")
    return text


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if "," in name or name != name.strip():
            raise ValueError(f"{name!r} is no name: write several as a list, [a, b]")
    if len(set(names)) < len(names):
        raise ValueError("a name stands twice in the list")
    return names


def _check_different(selectors: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(selectors)) < len(selectors):
        raise ValueError("a selector stands twice in the list")
    return selectors


Names = Annotated[Texts, AfterValidator(_check_names)]
Selectors = Annotated[tuple[SelectorText, ...], OneOrMany, AfterValidator(_check_different)]


class ShrinkLimit(Section):
    """How much of the source may vanish in one run unless confirmed: the larger of both."""

    share: Share = Field(0.2, description="Share of what the target holds, 0 to 1")
    count: Count = Field(10, description="Number of entities or structures")
    beyond: Literal["stop", "ask"] = Field(
        "stop", description="stop: a run beyond the limit fails; ask: it waits in Airflow until a person approves"
    )
    answer_hours: Positive = Field(24, description="With ask: hours after which a run without an answer fails")


class Source(Section):
    """A context broker (`ngsi`) or a structure registry (`sdmx`) and what is selected from it, or Contexture itself."""

    kind: Literal["ngsi", "sdmx", "operations"] = Field(
        description="ngsi: a context broker; sdmx: a structure registry; operations: what Contexture itself did"
    )
    connection: ConnectionId = Field(
        description="Id of the Airflow connection to the source; never an address or secret. operations: none"
    )

    # Before the fields whose syntax depends on it.
    api: Literal["ngsiv2", "ngsi-ld"] = Field("ngsiv2", description="Broker: which interface is read")
    flavour: Literal["auto", "orion", "orion-ld", "scorpio", "stellio", "fmr", "generic"] = Field(
        "auto", description="Which product it is (orion to stellio: brokers, fmr: registry); auto asks it"
    )
    context: Annotated[StrictStr, AfterValidator(_check_context)] | None = Field(
        None, description="With api ngsi-ld: URL of the @context that names of types and attributes are written by"
    )
    service: Service = Field(
        "", description='Fiware-Service, or the tenant of NGSI-LD; "" is the broker\'s default tenant'
    )
    service_path: ServicePaths = Field(
        ("/#",),
        description="Fiware-ServicePath, or scope of NGSI-LD: one or a list; /# and /a/# select trees, which cover "
        "paths inside",
    )
    types: Names = Field((), description="Entity types; empty selects all")
    ids: Names = Field((), description="Entity ids; empty selects all")
    id_pattern: Annotated[StrictStr, AfterValidator(_check_pattern), Field(min_length=1)] | None = Field(
        None, description="POSIX regular expression that entity ids must match; in place of ids"
    )
    type_pattern: Annotated[StrictStr, AfterValidator(_check_pattern), Field(min_length=1)] | None = Field(
        None, description="POSIX regular expression that entity types must match; in place of types"
    )
    query: Annotated[Text, AfterValidator(_check_query)] | None = Field(
        None, description="NGSI q expression, such as speed>50;brand==Seat"
    )
    metadata_query: Text | None = Field(None, description="NGSI mq expression on metadata, such as speed.accuracy>0.9")
    attributes: Names = Field((), description="Attributes to read; empty reads all")
    georel: Text | None = Field(None, description="NGSI georel, such as near;maxDistance:1000")
    geometry: Literal["point", "line", "polygon", "box"] | None = Field(None, description="NGSI geometry")
    coords: Text | None = Field(None, description="NGSI coords, latitude,longitude joined by ;")

    select: Selectors = Field(
        (), description="Registry: selectors of structures, such as *=BIS:*(*); empty selects all"
    )
    media_type: Annotated[StrictStr, AfterValidator(_check_media_type)] | None = Field(
        None,
        description="Registry: the form that structures are asked for and sent in; null: SDMX-ML 2.1 "
        "(application/vnd.sdmx.structure+xml;version=2.1)",
    )
    registrations: Flag = Field(False, description="Registry: publish data registrations too")

    mode: Literal["changes", "full", "notifications"] = Field(
        "changes",
        description="changes: what differs from the target; full: everything; notifications: what was notified",
    )
    notifier_connection: ConnectionId = Field(
        "contexture_notify",
        description="Notifications: id of the Airflow connection with the secret that whoever notifies has to show",
    )
    detect_deletions: Flag = Field(True, description="Publish a tombstone for what vanished from the source")
    shrink_limit: ShrinkLimit = Field(ShrinkLimit.model_construct(), description="What may vanish in one run")
    page_size: Annotated[Positive, Field(le=1000)] = Field(1000, description="Entities asked for in one request")
    overlap_seconds: Count = Field(60, description="How far a changes run reads back behind its watermark")
    walk_deadline_seconds: Positive = Field(3600, description="A walk of the source fails when it takes longer")
    suppress_unchanged: Flag = Field(
        True, description="Leave out what was written again without a change; false: mode changes sends it too"
    )
    parallel_readers: Annotated[Positive, Field(le=16)] = Field(
        2, description="Requests to the source under way at once; a large source is read in as many slices"
    )
    pause_milliseconds: Count = Field(0, description="How long each reader waits between two pages")

    @property
    def keeps_history(self) -> bool:
        """Whether it is of a kind that can be asked for the past."""
        return self.api == "ngsi-ld" if self.kind == "ngsi" else self.flavour != "generic"
