"""Structure queries of SDMX-REST, versions 1 and 2, and lists of a registry's structures without content."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Self

from contexture.errors import DefectError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format, format_of, other_format, same_artefact, splittable
from contexture.sources.sdmx.registry.connection import RegistryConnection
from contexture.sources.sdmx.registry.interface import (
    ANY,
    Log,
    LogPeriod,
    NotExpressible,
    NotModified,
    RegistryFlavour,
    Reply,
    StructureEntry,
    StructureQuery,
)
from contexture.sources.sdmx.registry.registrations import Registrations
from contexture.sources.sdmx.registry.structures import Api, Contents, StructurePaths
from contexture.sources.sdmx.registry.transport import (
    NOT_FOUND,
    NOT_MODIFIED,
    OK,
    SMALL,
    StructureDownloads,
    StructureRequest,
    probe_address,
)
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.urn import REGISTRATION, Urn, is_registration

_TOGETHER_FROM = 4
_WANTED_SHARE = 0.5


def plan_queries(urns: Sequence[str], held: Iterable[str] = ()) -> tuple[StructureQuery, ...]:
    """Returns queries that together cover these structures, one for a kind of an agency where that costs less.

    Args:
        urns: what is to be read.
        held: everything there is, where that is known: it shows how much a query would return needlessly.
    """
    wanted: dict[tuple[str, str], list[Urn]] = {}
    for urn in dict.fromkeys(urns):
        named = Urn.parse(urn)
        wanted.setdefault((named.class_name, named.agency), []).append(named)
    there = Counter((named.class_name, named.agency) for named in map(Urn.parse, held))
    questions: list[StructureQuery] = []
    for (kind, agency), group in sorted(wanted.items()):
        of_all = max(there[kind, agency], len(group))
        if len(group) >= _TOGETHER_FROM and len(group) >= of_all * _WANTED_SHARE:
            questions.append(StructureQuery(kind, agency))
        else:
            questions += [StructureQuery(kind, agency, named.id, named.version) for named in group]
    return tuple(questions)


def query_for(urn: str) -> StructureQuery:
    """Returns the query for one structure.

    Raises:
        ValueError: it is no URN.
    """
    named = Urn.parse(urn).maintainable()
    return StructureQuery(named.class_name, named.agency, named.id, named.version)


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of stubs.

    Attributes:
        urns: in its order.
        unnamed: stubs without a URN.
        last_modified: of the response.
        is_stated: it lists something, or the registry reported that there is nothing; else it just was empty.
    """

    urns: tuple[str, ...] = ()
    unnamed: int = 0
    last_modified: str | None = None
    is_stated: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it lists nothing, which is never accepted alone."""
        return not self.urns and not self.unnamed


def read_listing(path: Path, media_type: str, who: str, last_modified: str | None = None) -> Listing:
    """Reads a message of stubs; the list is empty where it is a message without structures.

    Raises:
        IncompleteReplyError: it is no whole message, or has a notice that it is not all.
    """
    with path.open("rb") as stream:
        artefacts = split(stream, media_type)
        try:
            found = [artefact.urn for artefact in artefacts]
        except StructureMessageError as error:
            raise _incomplete(f"the list of structures of {who} is not a complete message: {error.message}") from error
    if notices := [finding for finding in artefacts.findings if finding.code == "notice"]:
        raise _incomplete(f"the list of structures of {who} comes with a notice: {notices[0].message}")
    urns = [urn for urn in found if urn is not None]
    return Listing(tuple(dict.fromkeys(urns)), len(found) - len(urns), last_modified, is_stated=bool(found))


def merge_listings(listings: Iterable[Listing], who: str) -> StructureEntry:
    """Merges several lists, the first one's names before those of others.

    Raises:
        IncompleteReplyError: all of them are empty.
    """
    given = [listing for listing in listings if not listing.is_empty]
    if not given:
        raise _incomplete(f"{who} lists no structure at all")
    urns: dict[str, str] = {}
    other_names: dict[str, str] = {}
    for urn in (urn for listing in given for urn in listing.urns):
        first = urns.setdefault(same_artefact(urn), urn)
        if first != urn:
            other_names[urn] = first
    unnamed = max(listing.unnamed for listing in given)
    return StructureEntry(tuple(urns.values()), other_names, unnamed, given[0].last_modified)


def _incomplete(message: str) -> IncompleteReplyError:
    return IncompleteReplyError(
        message,
        next_step="check the registry's log, and that the connection's credentials may read; nothing counts as "
        "deleted, and the run is retried",
    )


_WHATEVER = "*/*"


class Listings:
    """Requests lists; every method makes one attempt.

    Args:
        contents: sends the requests.
        formats: media types of lists; one that lists all kinds is alone.
    """

    def __init__(self, contents: Contents, formats: Sequence[str]) -> None:
        self._contents = contents
        self._formats = tuple(formats)
        self._first = self._formats[0]

    def everything(self, media_type: str | None = None) -> StructureEntry:
        given: list[Listing] = []
        for format_ in self._in_order(media_type):
            listing = self._listing(StructureQuery(), format_)
            if listing is not None:
                self._first = self._first if given else format_
                given.append(listing)
        if not given and (listing := self._listing(StructureQuery(), _WHATEVER)) is not None:
            given.append(listing)
        return merge_listings(given, self._contents.who)

    def unchanged_since(self, last_modified: str) -> bool:
        path = self._contents.paths.of(StructureQuery(), stubs=True)
        status = self._contents.transport.status(StructureRequest(path, self._first, last_modified))
        return status == NOT_MODIFIED

    def names(self, urn: str, media_type: str, as_of: datetime | None) -> bool:
        """Whether the registry lists this structure, whatever its name of the kind is.

        Raises:
            IncompleteReplyError: its lists are empty, or contradict each other.
        """
        is_listed = self._is_listed(urn, media_type, as_of)
        if is_listed is None and as_of is None:
            is_listed = self._confirm_absence(urn, media_type)
        if is_listed is None:
            raise IncompleteReplyError(
                f"{self._contents.who} returns nothing for {urn}",
                next_step="check the registry's log; nothing counts as deleted, and the run is retried",
            )
        return is_listed

    def _is_listed(self, urn: str, media_type: str, as_of: datetime | None = None) -> bool | None:
        """Whether it lists this one when that alone is requested; None where it returns nothing at all."""
        query = replace(query_for(urn), kind=ANY)
        listings = [
            listing
            for format_ in self._in_order(media_type)
            if (listing := self._listing(query, format_, as_of)) is not None
        ]
        if any(same_artefact(urn) in map(same_artefact, listing.urns) for listing in listings):
            return True
        return False if any(listing.is_stated for listing in listings) else None

    def _confirm_absence(self, urn: str, media_type: str) -> bool | None:
        """Whether an empty list states that there is none: it does where another structure is listed as it should be.

        A registry should respond that nothing was found (404), and some return nothing.
        """
        held = self.everything(media_type).urns
        if self._is_listed(held[0], media_type) is not True:
            return None
        # Well again: by now it may list it.
        is_listed = self._is_listed(urn, media_type)
        return same_artefact(urn) in map(same_artefact, held) if is_listed is None else is_listed

    def _in_order(self, media_type: str | None) -> Iterator[str]:
        carries_all = len(self._formats) == 1 and self._formats[0].endswith("fusion.json")
        if not carries_all and media_type is not None and splittable(media_type) and format_of(media_type):
            yield media_type
        yield from (format_ for format_ in self._formats if format_ != media_type or carries_all)

    def _listing(self, query: StructureQuery, media_type: str, as_of: datetime | None = None) -> Listing | None:
        """Returns the list in one format; None where the registry does not return it."""
        path = self._contents.paths.of(query, stubs=True, as_of=as_of)
        with tempfile.TemporaryDirectory(prefix="contexture-stubs-") as folder:
            into = Path(folder, "stubs")
            fetched = self._contents.fetch(path, media_type, into)
            if fetched is None or fetched.status not in {OK, NOT_FOUND}:
                return None
            if fetched.status == NOT_FOUND:
                self._contents.check_not_found(fetched)
                return Listing(is_stated=True)
            if not fetched.size:
                return Listing()
            is_other = other_format(into, media_type, fetched.media_type) is not None or media_type == _WHATEVER
            hint = fetched.media_type if is_other else media_type
            return read_listing(into, hint, self._contents.who, fetched.headers.get("last-modified"))


class FormatSupport:
    """Which structures the registry returned in which format, and which kinds it never does."""

    def __init__(self) -> None:
        self._came: dict[str, dict[str, StructureQuery]] = {}
        self._never: set[tuple[str, str]] = set()
        self._searched: set[str] = set()

    def record_success(self, query: StructureQuery, media_type: str) -> None:
        """Records that one structure was returned."""
        self._came.setdefault(media_type, {})[query.kind] = query
        self._never.discard((query.kind, media_type))

    def record_failure(self, query: StructureQuery, media_type: str) -> None:
        """Records that a structure is not returned any more, so that it shows nothing from now on."""
        given = self._came.get(media_type, {})
        if given.get(query.kind) == query:
            del given[query.kind]

    def record_unsupported(self, query: StructureQuery, media_type: str) -> None:
        """Records that one structure is there, and not returned though others are."""
        if query.kind not in self._came.get(media_type, {}):
            self._never.add((query.kind, media_type))

    def is_unsupported(self, query: StructureQuery, media_type: str) -> bool:
        """Whether the format is known not to express this kind."""
        return (query.kind, media_type) in self._never

    def is_new_to(self, media_type: str) -> bool:
        """Whether nothing is known of the format; true only once."""
        if media_type in self._searched or self._came.get(media_type):
            return False
        self._searched.add(media_type)
        return True

    def another(self, query: StructureQuery, media_type: str) -> StructureQuery | None:
        """Returns a structure that was returned in the format; one of the same kind rather than of another."""
        given = self._came.get(media_type, {})
        own = given.get(query.kind)
        others = [own, *given.values()] if own else list(given.values())
        return next((each for each in others if each != query), None)


_CHECKED_AT_MOST = 5


class RestRegistry(ABC):
    """What registries have in common: structures by SDMX-REST.

    Args:
        connection: where it is.
        transport: sends its requests; closed with this.
        paths: its structure queries.
        stub_formats: media types in which its lists are requested.
        has_history: whether it knows `asOf`.
        has_registrations: whether data registrations are listed with its structures.
    """

    def __init__(
        self,
        connection: RegistryConnection,
        transport: StructureDownloads,
        paths: StructurePaths,
        stub_formats: Sequence[str],
        *,
        has_history: bool = False,
        has_registrations: bool = False,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._contents = Contents(connection, transport, paths, self._probe)
        self._listings = Listings(self._contents, stub_formats)
        self._support = FormatSupport()
        self._held: tuple[str, ...] = ()
        self._has_history = has_history
        self._registrations = Registrations(self._contents)
        self._has_registrations = has_registrations

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self._connection.address

    @property
    def has_history(self) -> bool:
        """Whether requests contain `as_of`."""
        return self._has_history

    def probe(self) -> None:
        self._transport.retrying(self._probe)

    def list_structures(self, media_type: str | None = None) -> StructureEntry:
        found = self._transport.retrying(lambda: self._listings.everything(media_type))
        if self._has_registrations:
            registrations = self._transport.retrying(lambda: self._registrations.list_all(media_type))
            # The time of the list's last change does not cover them.
            found = replace(found, urns=(*found.urns, *registrations), last_modified=None)
        self._held = found.urns
        return found

    def unchanged_since(self, last_modified: str) -> bool:
        return self._transport.retrying(lambda: self._listings.unchanged_since(last_modified))

    def queries(self, urns: Sequence[str]) -> tuple[StructureQuery, ...]:
        return plan_queries(urns, self._held)

    def read(
        self, query: StructureQuery, media_type: str, into: Path, *, unless_modified_since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        if query.kind == REGISTRATION:
            return self._transport.retrying(lambda: self._registrations.read(query, media_type, into))
        return self._transport.retrying(
            lambda: self._contents.read(query, media_type, into, since=unless_modified_since)
        )

    def read_one(
        self, urn: str, media_type: str, into: Path, *, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        if is_registration(urn):
            return self._transport.retrying(lambda: self._registrations.read_one(urn, media_type, into))
        moment = as_of if self._has_history else None
        return self._transport.retrying(lambda: self._one(urn, media_type, into, moment))

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @abstractmethod
    def _probe(self) -> None:
        """Returns when the registry is well; makes one attempt."""

    def _one(self, urn: str, media_type: str, into: Path, as_of: datetime | None) -> Reply | NotExpressible | None:
        query = query_for(urn)
        found = self._contents.fetch_one(query, media_type, into, as_of)
        if isinstance(found, NotExpressible):
            return found
        if isinstance(found, Reply) and not self._contents.is_empty(found):
            self._support.record_success(query, media_type)
            return found
        # Neither "no such thing" nor an empty response is accepted alone: a kind may have another name, and a reply
        # may have lost its content.
        if not self._listings.names(urn, media_type, as_of):
            return None
        if found is not None and self._support.is_unsupported(query, media_type):
            return _not_given(media_type)
        return self._listed_one(urn, media_type, into, as_of)

    def _listed_one(self, urn: str, media_type: str, into: Path, as_of: datetime | None) -> Reply | NotExpressible:
        query = query_for(urn)
        found = self._by_any_name(urn, media_type, into, as_of)
        if found is None:
            self._check_others(query, media_type, into)
            found = self._by_any_name(urn, media_type, into, as_of)
        if found is None:
            self._support.record_unsupported(query, media_type)
        return found or _not_given(media_type)

    def _by_any_name(
        self, urn: str, media_type: str, into: Path, as_of: datetime | None
    ) -> Reply | NotExpressible | None:
        query = query_for(urn)
        for variant in (query, replace(query, kind=ANY)):
            found = self._contents.fetch_one(variant, media_type, into, as_of)
            if isinstance(found, NotExpressible):
                return found
            if found is not None and same_artefact(urn) in self._contents.names_in(found, variant, urn):
                self._support.record_success(query, media_type)
                return found
        return None

    def _check_others(self, query: StructureQuery, media_type: str, into: Path) -> None:
        """Checks that another structure is still returned in the format, where one ever was.

        Raises:
            IncompleteReplyError: it is empty too.
        """
        while (other := self._support.another(query, media_type)) is not None:
            found = self._contents.fetch_one(other, media_type, into)
            if isinstance(found, Reply):
                self._contents.check_filled(found)
                return
            self._support.record_failure(other, media_type)
        if self._support.is_new_to(media_type):
            self._find_one(query, media_type, into)

    def _find_one(self, query: StructureQuery, media_type: str, into: Path) -> None:
        """Searches a few times for some structure that is returned in the format."""
        others = (other for urn in self._listings.everything(media_type).urns if (other := query_for(urn)) != query)
        for other in islice(others, _CHECKED_AT_MOST):
            found = self._contents.fetch_one(other, media_type, into)
            if isinstance(found, Reply) and not self._contents.is_empty(found):
                self._support.record_success(other, media_type)
                return


def _not_given(media_type: str) -> NotExpressible:
    return NotExpressible(f"the registry lists it, and returns nothing of it as {media_type}")


LIST_FORMATS: dict[Api, str] = {"v1": Format.SDMX_ML_2_1.media_type, "v2": Format.SDMX_ML_3_0.media_type}
"""What a registry of each version of SDMX-REST renders, if anything."""


class SdmxRegistry(RestRegistry):
    """A structure registry that offers SDMX-REST and nothing else; see `Registry`. Other arguments as `RestRegistry`.

    Args:
        sign_of_life: a small query that succeeded.
    """

    flavour: RegistryFlavour = "generic"
    has_log = False

    def __init__(
        self,
        connection: RegistryConnection,
        transport: StructureDownloads,
        paths: StructurePaths,
        sign_of_life: StructureQuery = SMALL,
        *,
        has_registrations: bool = False,
    ) -> None:
        formats = (LIST_FORMATS[paths.api],)
        super().__init__(connection, transport, paths, formats, has_registrations=has_registrations)
        self._sign_of_life = paths.of(sign_of_life, stubs=True)
        self._api = paths.api

    @property
    def product(self) -> str:
        """The interface is all that is known of it."""
        return f"SDMX-REST {self._api.removeprefix('v')}"

    def transactions(self, after: int | None) -> Log:
        """Raises an error, because there is no log."""
        raise self._no_log(f"after {after}")

    def period(self, start: datetime, end: datetime) -> LogPeriod:
        """Raises an error, because there is no log."""
        raise self._no_log(f"from {start} to {end}")

    def _no_log(self, what: str) -> DefectError:
        return DefectError(
            f"a log was requested of {self.address}, which has none ({what})", next_step="report this error"
        )

    def _probe(self) -> None:
        attempt = probe_address(self._transport, self._sign_of_life)
        if attempt.status != OK and not (attempt.status == NOT_FOUND and attempt.is_registrys):
            raise RegistryUnavailableError(
                f"{self._connection.WHO} at {self.address} no longer responds to structure queries ({attempt.status})",
                next_step="check whether it is being started or moved; the run is retried",
            )
