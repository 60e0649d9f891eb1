"""The section `source`: what is read, and from where; which keys belong to which kind of source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictStr

from contexture.publications.bounded_patterns import BoundedPattern
from contexture.publications.fields import (
    ChangesNoRecord,
    ChangesRecords,
    ConnectionId,
    Count,
    Flag,
    OneOrMany,
    Positive,
    PublicationModel,
    SelectorText,
    Service,
    ServicePaths,
    Share,
    Text,
    Texts,
)

SourceKind = Literal["ngsi", "sdmx", "operations"]

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
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    if "(?" in pattern:
        raise ValueError(f"{pattern!r}: brokers take POSIX extended expressions, which have no (?...) groups")
    return pattern


def _check_context(address: str) -> str:
    # It is sent in a header, between < and >.
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"{address!r} is not an address of a @context: write http(s)://... without spaces and quotes")
    return address


def _check_query(query: str) -> str:
    for statement in _STATEMENT.findall(query):
        name = _NAME.match(statement)
        # A walk goes along these times; a second condition on one of them makes the broker forget the first.
        if name and name[1] in _WALKED:
            raise ValueError(f"{statement.strip()!r}: a walk of the source needs {name[1]} for itself; leave it out")
        # Measured: `q=dateExpires` matches nothing and `q=!dateExpires` everything, without an error.
        if statement.strip().removeprefix("!") in _BUILTINS:
            raise ValueError(
                f"brokers evaluate {statement.strip()!r} wrongly without an error: compare it with a value"
            )
    return query


def _check_media_type(text: str) -> str:
    # It is sent in a header.
    if not _MEDIA_TYPE.fullmatch(text):
        hint = "write type/subtype;version=..., as in application/vnd.sdmx.structure+xml;version=2.1"
        raise ValueError(f"{text!r} is not a media type: {hint}")
    return text


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if "," in name or name != name.strip():
            raise ValueError(f"{name!r} is not a name: write several as a list, [a, b]")
    if len(set(names)) < len(names):
        raise ValueError("a name is in the list twice")
    return names


def _check_different(selectors: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(selectors)) < len(selectors):
        raise ValueError("a selector is in the list twice")
    return selectors


Names = Annotated[Texts, AfterValidator(_check_names)]
Selectors = Annotated[tuple[SelectorText, ...], OneOrMany, AfterValidator(_check_different)]


_SELECTS = ChangesRecords("selects what is published")
_KIND = ChangesRecords("another kind of source has other content")
_GUARD = ChangesNoRecord("a guard that stops a run")
_READING = ChangesNoRecord("how it is read, not what")
_CONNECTION = ChangesRecords("another source has other content")
_FORM = ChangesRecords("another interface may write structures in another way")
_MODE = ChangesNoRecord("how much is read at once; what differs from the target stays the same")


class ShrinkLimit(PublicationModel):
    """How much of the target one run may delete unless confirmed: the larger of both."""

    share: Annotated[Share, _GUARD] = Field(
        0.2, description="Largest share of the target that one run may delete, 0 to 1"
    )
    count: Annotated[Count, _GUARD] = Field(10, description="Number of deletions that are always allowed")
    beyond: Annotated[Literal["stop", "ask"], _GUARD] = Field(
        "stop", description="stop: a run beyond the limit fails; ask: it waits in Airflow until a person approves"
    )
    answer_hours: Annotated[Positive, _GUARD] = Field(
        24, description="With ask: hours after which a run without an answer fails"
    )


_KINDS = "ngsi: a context broker; sdmx: a structure registry; operations: Contexture's own events"


class Source(PublicationModel):
    """What is read, and from where; the subclass is chosen by `kind`.

    Attributes:
        has_log: whether the source keeps a log of its transactions, which says what changed and what was deleted.
        has_content: whether the source holds something that topics can be equal to. What Contexture itself did only
            happens.
        title: what a sentence calls it.
        plural: what a sentence calls that which it holds.
    """

    has_log: ClassVar[bool] = False
    has_content: ClassVar[bool] = True
    title: ClassVar[str] = "the source"
    plural: ClassVar[str] = "entities"

    kind: Annotated[SourceKind, _KIND] = Field(description=_KINDS)
    connection: Annotated[ConnectionId, _CONNECTION] = Field(
        description="Id of the Airflow connection to the source; never an address or secret"
    )
    mode: Annotated[Literal["changes", "full", "notifications"], _MODE] = Field(
        "changes",
        description="changes: what differs from the target; full: everything; notifications: what was notified",
    )
    detect_deletions: Annotated[Flag, ChangesRecords("decides whether there are tombstones")] = Field(
        True, description="Publish a tombstone for what is absent from the source"
    )
    shrink_limit: ShrinkLimit = Field(ShrinkLimit.model_construct(), description="What may be deleted in one run")
    walk_deadline_seconds: Annotated[Positive, _GUARD] = Field(
        3600, description="A read of the whole source fails when it takes longer"
    )
    parallel_readers: Annotated[Positive, Field(le=16), _READING] = Field(
        2, description="Parallel requests to the source; a large source is read in as many slices"
    )
    pause_milliseconds: Annotated[Count, _READING] = Field(
        0, description="How long each reader waits between two pages"
    )

    def __new__(cls, **values: object) -> Self:
        """Makes the class of `kind` where `Source` itself is called."""
        return super().__new__(SOURCES.get(values.get("kind"), cls) if cls is Source else cls)  # type: ignore[return-value]

    @property
    def tenant(self) -> str:
        """The tenant of a context broker that is read; "" where there is none."""
        return ""

    @property
    def keeps_history(self) -> bool:
        """Whether the source can be asked for the past."""
        return True


class NgsiSource(Source):
    """A context broker, and the entities that are selected from it."""

    title: ClassVar[str] = "the context broker"

    kind: Annotated[Literal["ngsi"], _KIND] = Field(description=_KINDS)
    # Before the fields whose syntax depends on it.
    api: Annotated[Literal["ngsiv2", "ngsi-ld"], ChangesRecords("another interface writes entities in another way")] = (
        Field("ngsiv2", description="Which interface is read")
    )
    flavour: Annotated[Literal["auto", "orion", "orion-ld", "scorpio", "stellio", "generic"], _FORM] = Field(
        "auto", description="Product of the source; auto detects it"
    )
    context: Annotated[
        Annotated[StrictStr, AfterValidator(_check_context)] | None,
        ChangesRecords("names of types and attributes follow from it"),
    ] = Field(
        None, description="With api ngsi-ld: URL of the @context that names of types and attributes are written by"
    )
    service: Annotated[Service, ChangesRecords("part of the identity and of topic names")] = Field(
        "", description='Fiware-Service, or the tenant of NGSI-LD; "" is the broker\'s default tenant'
    )
    service_path: Annotated[ServicePaths, _SELECTS] = Field(
        ("/#",),
        description="Fiware-ServicePath, or scope of NGSI-LD: one or a list; /# and /a/# select trees, which cover "
        "paths inside",
    )
    types: Annotated[Names, _SELECTS] = Field((), description="Entity types; empty selects all")
    ids: Annotated[Names, _SELECTS] = Field((), description="Entity ids; empty selects all")
    id_pattern: Annotated[
        Annotated[StrictStr, AfterValidator(_check_pattern), Field(min_length=1)] | None, _SELECTS
    ] = Field(None, description="POSIX regular expression that entity ids must match; in place of ids")
    type_pattern: Annotated[
        Annotated[StrictStr, AfterValidator(_check_pattern), Field(min_length=1)] | None, _SELECTS
    ] = Field(None, description="POSIX regular expression that entity types must match; in place of types")
    query: Annotated[Annotated[Text, AfterValidator(_check_query)] | None, _SELECTS] = Field(
        None, description="NGSI q expression, such as speed>50;brand==Seat"
    )
    metadata_query: Annotated[Text | None, _SELECTS] = Field(
        None, description="NGSI mq expression on metadata, such as speed.accuracy>0.9"
    )
    attributes: Annotated[Names, ChangesRecords("selects what a record holds")] = Field(
        (), description="Attributes to read; empty reads all"
    )
    georel: Annotated[Text | None, _SELECTS] = Field(None, description="NGSI georel, such as near;maxDistance:1000")
    geometry: Annotated[Literal["point", "line", "polygon", "box"] | None, _SELECTS] = Field(
        None, description="NGSI geometry"
    )
    coords: Annotated[Text | None, _SELECTS] = Field(None, description="NGSI coords, latitude,longitude joined by ;")
    notifier_connection: Annotated[ConnectionId, ChangesNoRecord("who may notify, not what")] = Field(
        "contexture_notify",
        description="Id of the Airflow connection with the secret that notifiers send",
    )
    page_size: Annotated[Positive, Field(le=1000), _READING] = Field(1000, description="Entities of one request")
    overlap_seconds: Annotated[Count, _READING] = Field(
        60, description="How far a changes run reads back behind its watermark"
    )
    suppress_unchanged: Annotated[
        Flag, ChangesNoRecord("which repeats are sent, not what they hold; outbox ids cover it")
    ] = Field(
        True, description="Skip entities that were written again without a change; false: mode changes sends them too"
    )

    @property
    def tenant(self) -> str:
        """The service, which NGSI-LD calls tenant."""
        return self.service

    @property
    def keeps_history(self) -> bool:
        """Whether the broker can be asked for the past: NGSI-LD has a temporal interface."""
        return self.api == "ngsi-ld"


STRUCTURE_FORM = "application/vnd.sdmx.structure+xml;version=2.1"
"""SDMX-ML 2.1, which every registry writes."""


class SdmxSource(Source):
    """A structure registry, and the structures that are selected from it."""

    has_log: ClassVar[bool] = True
    title: ClassVar[str] = "the registry"
    plural: ClassVar[str] = "structures"

    kind: Annotated[Literal["sdmx"], _KIND] = Field(description=_KINDS)
    flavour: Annotated[Literal["auto", "fmr", "generic"], _FORM] = Field(
        "auto", description="Product of the source; auto detects it"
    )
    select: Annotated[Selectors, _SELECTS] = Field(
        (), description="Selectors of structures, such as *=BIS:*(*); empty selects all"
    )
    media_type: Annotated[
        Annotated[StrictStr, AfterValidator(_check_media_type)] | None,
        ChangesRecords("the form in which structures arrive"),
    ] = Field(STRUCTURE_FORM, description="Format in which structures are read and sent; null: SDMX-ML 2.1")
    registrations: Annotated[Flag, _SELECTS] = Field(
        False, description="Publish data registrations too, each with its URN as key"
    )
    mode: Annotated[Literal["changes", "full"], _MODE] = Field(
        "changes", description="changes: what differs from the target; full: everything"
    )

    @property
    def keeps_history(self) -> bool:
        """Whether the registry can be asked for the past: a Fusion registry by its log."""
        return self.flavour != "generic"


class OperationsSource(Source):
    """Contexture itself: what its runs did, from the operational tables."""

    has_content: ClassVar[bool] = False
    title: ClassVar[str] = "Contexture itself"
    plural: ClassVar[str] = "events"

    kind: Annotated[Literal["operations"], _KIND] = Field(description=_KINDS)
    connection: Annotated[ConnectionId, _CONNECTION] = Field(
        "operational_tables", description="None: what Contexture did is in its own tables"
    )


SOURCES: Final[Mapping[object, type[Source]]] = {
    "ngsi": NgsiSource,
    "sdmx": SdmxSource,
    "operations": OperationsSource,
}
"""The class of a source by its kind."""
