"""Structure queries, as every registry answers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from contexture.sdmx.registries.connection import RegistryConnection
from contexture.sdmx.registries.contents import Contents
from contexture.sdmx.registries.experience import Experience
from contexture.sdmx.registries.listings import Listings
from contexture.sdmx.registries.names import same_artefact
from contexture.sdmx.registries.paths import StructurePaths
from contexture.sdmx.registries.planning import exactly, planned
from contexture.sdmx.registries.port import ANY, Held, NotExpressible, NotModified, Query, Reply
from contexture.sdmx.registries.transport import Transport

_LOOKED_AT = 5


class RestRegistry(ABC):
    """What registries have in common: structures by SDMX-REST.

    Args:
        connection: where it is.
        transport: asks it; closed with this.
        paths: its structure queries.
        stub_formats: media types in which its lists are asked for.
        has_history: whether it knows `asOf`.
    """

    def __init__(
        self,
        connection: RegistryConnection,
        transport: Transport,
        paths: StructurePaths,
        stub_formats: Sequence[str],
        *,
        has_history: bool = False,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._contents = Contents(connection, transport, paths, self._probe)
        self._listings = Listings(self._contents, stub_formats)
        self._experience = Experience()
        self._held: tuple[str, ...] = ()
        self._has_history = has_history

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self._connection.address

    @property
    def has_history(self) -> bool:
        """Whether `as_of` is asked for."""
        return self._has_history

    def probe(self) -> None:
        """See `Registry.probe`."""
        self._transport.patiently(self._probe)

    def held(self, media_type: str | None = None) -> Held:
        """See `Registry.held`."""
        found = self._transport.patiently(lambda: self._listings.everything(media_type))
        self._held = found.urns
        return found

    def unchanged_since(self, last_modified: str) -> bool:
        """See `Registry.unchanged_since`."""
        return self._transport.patiently(lambda: self._listings.unchanged_since(last_modified))

    def queries(self, urns: Sequence[str]) -> tuple[Query, ...]:
        """See `Registry.queries`."""
        return planned(urns, self._held)

    def read(
        self, query: Query, media_type: str, into: Path, *, unless_modified_since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        """See `Registry.read`."""
        return self._transport.patiently(
            lambda: self._contents.read(query, media_type, into, since=unless_modified_since)
        )

    def read_one(
        self, urn: str, media_type: str, into: Path, *, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        """See `Registry.read_one`."""
        moment = as_of if self._has_history else None
        return self._transport.patiently(lambda: self._one(urn, media_type, into, moment))

    def close(self) -> None:
        """Gives the connections back."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _probe(self) -> None:
        """Returns when the registry is well; tries once."""

    def _one(self, urn: str, media_type: str, into: Path, as_of: datetime | None) -> Reply | NotExpressible | None:
        query = exactly(urn)
        found = self._contents.of_one(query, media_type, into, as_of)
        if isinstance(found, NotExpressible):
            return found
        if isinstance(found, Reply) and not self._contents.is_empty(found):
            self._experience.came(query, media_type)
            return found
        # Neither "no such thing" nor an empty answer is believed alone: a kind may go by another name, and a reply
        # may have lost what it held.
        if not self._listings.names(urn, media_type, as_of):
            return None
        if found is not None and self._experience.is_never_given(query, media_type):
            return _not_given(media_type)
        return self._listed_one(urn, media_type, into, as_of)

    def _listed_one(self, urn: str, media_type: str, into: Path, as_of: datetime | None) -> Reply | NotExpressible:
        query = exactly(urn)
        found = self._by_any_name(urn, media_type, into, as_of)
        if found is None:
            self._check_others(query, media_type, into)
            found = self._by_any_name(urn, media_type, into, as_of)
        if found is None:
            self._experience.never_comes(query, media_type)
        return found or _not_given(media_type)

    def _by_any_name(
        self, urn: str, media_type: str, into: Path, as_of: datetime | None
    ) -> Reply | NotExpressible | None:
        query = exactly(urn)
        for asked in (query, replace(query, kind=ANY)):
            found = self._contents.of_one(asked, media_type, into, as_of)
            if isinstance(found, NotExpressible):
                return found
            if found is not None and same_artefact(urn) in self._contents.names_in(found, asked, urn):
                self._experience.came(query, media_type)
                return found
        return None

    def _check_others(self, query: Query, media_type: str, into: Path) -> None:
        """Sees that another structure is still given in the format, where one is found that ever was.

        Raises:
            IncompleteReplyError: it comes empty too.
        """
        while (other := self._experience.another(query, media_type)) is not None:
            found = self._contents.of_one(other, media_type, into)
            if isinstance(found, Reply):
                self._contents.check_filled(found)
                return
            self._experience.went(other, media_type)
        if self._experience.is_new_to(media_type):
            self._look_for_one(query, media_type, into)

    def _look_for_one(self, query: Query, media_type: str, into: Path) -> None:
        """Looks a few times for some structure that is given in the format."""
        others = (other for urn in self._listings.everything(media_type).urns if (other := exactly(urn)) != query)
        for other in islice(others, _LOOKED_AT):
            found = self._contents.of_one(other, media_type, into)
            if isinstance(found, Reply) and not self._contents.is_empty(found):
                self._experience.came(other, media_type)
                return


def _not_given(media_type: str) -> NotExpressible:
    return NotExpressible(f"the registry lists it, and gives nothing of it as {media_type}")
