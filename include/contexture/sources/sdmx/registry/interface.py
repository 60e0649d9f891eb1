"""What is requested of a structure registry, and what it returns: the interface that its clients implement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, Self

from contexture.errors import ConfigurationError


class FormatNotOfferedError(ConfigurationError):
    """The registry responds in another format than the requested one."""


class LogResetError(ConfigurationError):
    """The registry's log ends before what was already read of it: it is another log."""


ANY = "*"
RegistryFlavour = Literal["fmr", "generic"]


@dataclass(frozen=True, slots=True)
class StructureQuery:
    """One bounded request for structures with their content.

    Attributes:
        kind: class as in URNs (`Codelist`), or `*`; `*` selects no data registrations, `Registration` does.
        agency, id, version: one each, or `*` for all.
    """

    kind: str = ANY
    agency: str = ANY
    id: str = ANY
    version: str = ANY

    def __str__(self) -> str:
        return f"{self.kind}={self.agency}:{self.id}({self.version})"


@dataclass(frozen=True, slots=True)
class StructureEntry:
    """Everything that a registry holds for this client: complete, and never empty.

    Attributes:
        urns: of maintainable artefacts, each once, in the registry's order.
        other_names: URNs in `urns` by the URN that the same artefact has in another format, where that was seen
            (a 2.1 `ContentConstraint` is a `DataConstraint` elsewhere).
        unnamed: artefacts that cannot be distinguished by a URN.
        last_modified: the registry's time of the last change of anything; None where it sends none.
    """

    urns: tuple[str, ...]
    other_names: Mapping[str, str] = field(default_factory=dict)
    unnamed: int = 0
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole response with structures, in a file of the caller's.

    Attributes:
        media_type: the requested one; the first bytes do not contradict it.
        path: the file.
        size: bytes in it.
        received_at: when the last of them came.
        last_modified: as the registry sent it, to be passed as `unless_modified_since`; None where it sends none.
    """

    media_type: str
    path: Path
    size: int
    received_at: datetime
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class NotModified:
    """Nothing that the query selects was added, modified or deleted since. It shows nothing else."""


@dataclass(frozen=True, slots=True)
class NotExpressible:
    """It is there, and the registry returns nothing of it in the requested format.

    Attributes:
        reason: of the registry, as our text.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class RegistryTransaction:
    """One transaction of a registry's log.

    Attributes:
        id: of the registry; later ones are greater.
        at: when.
        action: such as Append, Merge, Replace, FullReplace, Delete.
        changed: URNs of maintainable artefacts that it added or modified.
        deleted: those that it deleted.
        added: those among the changed that were not there before it, where the registry shows that.
        hides_registrations: it changed or deleted data registrations, and the log does not say which.
    """

    id: int
    at: datetime
    action: str
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    hides_registrations: bool = False


@dataclass(frozen=True, slots=True)
class LogPeriod:
    """Which transactions of structures a registry's log has in an interval; not what they did.

    Attributes:
        before: id of the last transaction before it; 0 for none.
        ids: of those in it, rising.
        is_whole: whether the log reaches back to its beginning; else older ones than `ids` may be in it too.
    """

    before: int = 0
    ids: tuple[int, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Log:
    """What a registry's log shows.

    Attributes:
        newest: the last id there is; 0 where nothing ever happened.
        transactions: those above `after` and above `gap_until`, in order. Their last id may be below `newest`: the
            others come with a later request.
        gap_until: transactions above `after` up to this id are not known fully; None where all are.
    """

    newest: int
    transactions: tuple[RegistryTransaction, ...] = ()
    gap_until: int | None = None


class Registry(Protocol):
    """A structure registry, over one connection; to be closed, or used as a context manager.

    Every method raises `RegistryUnavailableError` (a `RetriableError`) when the registry is away, ill, or returns less
    than a whole message, after three attempts; and `ConfigurationError` when a person has to change something.
    """

    @property
    def flavour(self) -> RegistryFlavour:
        """`fmr` for a Fusion (Metadata) Registry and its kin."""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""

    @property
    def product(self) -> str:
        """Its product, such as `FMR 12.4.2`; for people."""

    @property
    def has_log(self) -> bool:
        """Whether `transactions` can be called."""

    @property
    def has_history(self) -> bool:
        """Whether `read_one` can read the past; `as_of` is left out of the request where it cannot."""

    def probe(self) -> None:
        """Returns when the registry is well."""

    def list_structures(self, media_type: str | None = None) -> StructureEntry:
        """Lists everything there is, by stubs.

        Args:
            media_type: the format that structures will be read in; where no format of the registry lists all kinds,
                what this one lists is named as it names it.
        """

    def unchanged_since(self, last_modified: str) -> bool:
        """Whether nothing was changed since `list_structures().last_modified`; False may only mean "not known"."""

    def queries(self, urns: Sequence[str]) -> tuple[StructureQuery, ...]:
        """Returns bounded queries that together cover these structures, in a stable order; they may select more.

        A structure that the response lacks is to be requested singly.
        """

    def read(
        self, query: StructureQuery, media_type: str, into: Path, *, unless_modified_since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        """Writes the response to one query to the file `into` (replaced if it is there); None: nothing is selected.

        Args:
            query: what is requested.
            media_type: the format.
            into: the file.
            unless_modified_since: `last_modified` of an earlier reply to the same query.

        Raises:
            ReplyTooLargeError: it has more bytes than the connection allows: request less in one call.
        """

    def read_one(
        self, urn: str, media_type: str, into: Path, *, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        """Reads one structure; None: the registry reports that it holds no such thing (then, where `as_of` is given).

        The message may contain others of the same agency, id and version; their URNs differ.

        Args:
            urn: of the structure.
            media_type: the format.
            into: the file.
            as_of: the moment of the past to read.
        """

    def transactions(self, after: int | None) -> Log:
        """Reads what happened after a transaction of the log; only with `has_log`.

        Args:
            after: id of the last one known; None reads `newest` alone.
        """

    def period(self, start: datetime, end: datetime) -> LogPeriod:
        """Reads which transactions happened in an interval, its end excluded; only with `has_log`."""

    def close(self) -> None:
        """Closes the connections."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: object) -> None: ...


Answer = Reply | NotExpressible | None


def read_one_in(
    registry: Registry, forms: Sequence[str], urn: str, into: Path, as_of: datetime | None = None
) -> Iterator[Answer]:
    """Yields one structure in each of these forms, until the caller stops; never empty.

    The response in the first form counts: that the registry holds no such thing, when it reports that twice in
    succession, or that it cannot express it. Of the other forms only replies are yielded.

    Args:
        registry: to read.
        forms: media types, the preferred one first.
        urn: of the structure.
        into: the file.
        as_of: the moment of the past to read.

    Raises:
        ContextureError: as `Registry.read_one`. A form that is not offered at all is no error where there are others.
    """
    for place, form in enumerate(forms):
        try:
            found = registry.read_one(urn, form, into, as_of=as_of)
            if found is None and place == 0:
                # A registry whose database is away for a moment reports that there is nothing.
                found = registry.read_one(urn, form, into, as_of=as_of)
        except FormatNotOfferedError as error:
            if len(forms) == 1:
                raise
            found = NotExpressible(error.message)
        if place == 0 or isinstance(found, Reply):
            yield found
        if place == 0 and found is None:
            return


def read_first_supported(registry: Registry, forms: Sequence[str], query: StructureQuery, into: Path) -> Reply | None:
    """Returns the reply to a query in the first of these forms that the registry offers; None where it offers none.

    Raises:
        ContextureError: as `Registry.read`. A form that is not offered at all is no error where there are others.
    """
    for form in forms:
        try:
            found = registry.read(query, form, into)
        except FormatNotOfferedError:
            if len(forms) == 1:
                raise
            continue
        if isinstance(found, Reply):
            return found
        if not isinstance(found, NotExpressible):
            return None
    return None
