"""Lists of a registry's structures without content: all of them, or whether it has one."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import format_of, other_format, same_artefact, splittable
from contexture.sources.sdmx.registry.interface import ANY, StructureEntry, StructureQuery
from contexture.sources.sdmx.registry.structures import Contents
from contexture.sources.sdmx.registry.transport import NOT_FOUND, NOT_MODIFIED, OK, StructureRequest
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.urn import Urn

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
            raise _incomplete(f"the list of structures of {who} is no whole message: {error.message}") from error
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
        next_step="look into the registry's log, and whether the connection's credentials may read; nothing is taken "
        "for deleted, and the run is retried",
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
        """See `Registry.list_structures`."""
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
        """See `Registry.unchanged_since`."""
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
                f"{self._contents.who} answers with nothing when it is asked for {urn}",
                next_step="look into the registry's log; nothing is taken for deleted, and the run is retried",
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
        with _file() as into:
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


@contextmanager
def _file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contexture-stubs-") as folder:
        yield Path(folder) / "stubs"
