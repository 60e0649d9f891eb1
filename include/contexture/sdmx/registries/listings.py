"""What a registry lists: everything, or whether it lists one structure."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from contexture.sdmx.registries import stubs
from contexture.sdmx.registries.answers import NOT_FOUND, NOT_MODIFIED, OK
from contexture.sdmx.registries.contents import Contents
from contexture.sdmx.registries.errors import IncompleteReplyError
from contexture.sdmx.registries.media_types import format_of, other_format, splittable
from contexture.sdmx.registries.names import same_artefact
from contexture.sdmx.registries.planning import exactly
from contexture.sdmx.registries.port import ANY, Held, Query
from contexture.sdmx.registries.stubs import Listing
from contexture.sdmx.registries.transport import Question

_WHATEVER = "*/*"


class Listings:
    """Asks for lists; every method tries once.

    Args:
        contents: how the registry is asked.
        formats: media types of lists; those of one that carries all kinds stand alone.
    """

    def __init__(self, contents: Contents, formats: Sequence[str]) -> None:
        self._contents = contents
        self._formats = tuple(formats)
        self._first = self._formats[0]

    def everything(self, media_type: str | None = None) -> Held:
        """See `Registry.held`."""
        given: list[Listing] = []
        for format_ in self._in_order(media_type):
            listing = self._listing(Query(), format_)
            if listing is not None:
                self._first = self._first if given else format_
                given.append(listing)
        if not given and (listing := self._listing(Query(), _WHATEVER)) is not None:
            given.append(listing)
        return stubs.all_held(given, self._contents.who)

    def unchanged_since(self, last_modified: str) -> bool:
        """See `Registry.unchanged_since`."""
        path = self._contents.paths.of(Query(), stubs=True)
        status = self._contents.transport.status(Question(path, self._first, last_modified))
        return status == NOT_MODIFIED

    def names(self, urn: str, media_type: str, as_of: datetime | None) -> bool:
        """Whether the registry lists this structure, whatever kind it calls it.

        Raises:
            IncompleteReplyError: its lists are empty, or contradict each other.
        """
        said = self._says(urn, media_type, as_of)
        if said is None and as_of is None:
            said = self._says_by_silence(urn, media_type)
        if said is None:
            raise IncompleteReplyError(
                f"{self._contents.who} answers with nothing when it is asked for {urn}",
                next_step="look into the registry's log; nothing is taken for deleted, and the run is retried",
            )
        return said

    def _says(self, urn: str, media_type: str, as_of: datetime | None = None) -> bool | None:
        """What it says when it is asked for this one alone; None where it answers with nothing at all."""
        query = replace(exactly(urn), kind=ANY)
        listings = [
            listing
            for format_ in self._in_order(media_type)
            if (listing := self._listing(query, format_, as_of)) is not None
        ]
        if any(same_artefact(urn) in map(same_artefact, listing.urns) for listing in listings):
            return True
        return False if any(listing.is_said for listing in listings) else None

    def _says_by_silence(self, urn: str, media_type: str) -> bool | None:
        """What an empty list means: that there is none, where another structure that is held is listed as it should be.

        A registry should say that nothing was found (404), and some answer with nothing.
        """
        held = self.everything(media_type).urns
        if self._says(held[0], media_type) is not True:
            return None
        # Well again: by now it may say it.
        said = self._says(urn, media_type)
        return same_artefact(urn) in map(same_artefact, held) if said is None else said

    def _in_order(self, media_type: str | None) -> Iterator[str]:
        carries_all = len(self._formats) == 1 and self._formats[0].endswith("fusion.json")
        if not carries_all and media_type is not None and splittable(media_type) and format_of(media_type):
            yield media_type
        yield from (format_ for format_ in self._formats if format_ != media_type or carries_all)

    def _listing(self, query: Query, media_type: str, as_of: datetime | None = None) -> Listing | None:
        """What is listed in one format; None where the registry doesn't give it."""
        path = self._contents.paths.of(query, stubs=True, as_of=as_of)
        with _file() as into:
            fetched = self._contents.fetch(path, media_type, into)
            if fetched is None or fetched.status not in {OK, NOT_FOUND}:
                return None
            if fetched.status == NOT_FOUND:
                self._contents.believe(fetched)
                return Listing(is_said=True)
            if not fetched.size:
                return Listing()
            told = other_format(into, media_type, fetched.media_type) is not None or media_type == _WHATEVER
            hint = fetched.media_type if told else media_type
            return stubs.listed(into, hint, self._contents.who, fetched.headers.get("last-modified"))


@contextmanager
def _file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contexture-stubs-") as folder:
        yield Path(folder) / "stubs"
