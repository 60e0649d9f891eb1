"""Structures with their content, in the requested format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import accept_values, is_cut_off, other_format, same_artefact, splittable
from contexture.sources.sdmx.registry.connection import RegistryConnection
from contexture.sources.sdmx.registry.interface import (
    ANY,
    FormatNotOfferedError,
    NotExpressible,
    NotModified,
    Reply,
    StructureQuery,
)
from contexture.sources.sdmx.registry.transport import (
    BAD_REQUEST,
    FORMAT_REFUSED,
    NO_CONTENT,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    NOT_MODIFIED,
    DownloadedFile,
    StructureDownloads,
    StructureRequest,
)
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.urn import REGISTRATION

Api = Literal["v1", "v2"]
# What a class of the other version of the model is called in this version's addresses.
_RESOURCES: Mapping[Api, Mapping[str, str]] = {
    "v1": {"DataConstraint": "contentconstraint", "Hierarchy": "hierarchicalcodelist", "StructureMap": "structureset"},
    "v2": {"ContentConstraint": "dataconstraint", "HierarchicalCodelist": "hierarchy", "StructureSet": "structuremap"},
}
_ALL: Mapping[Api, str] = {"v1": "all", "v2": ANY}


@dataclass(frozen=True, slots=True)
class StructurePaths:
    """The addresses of one interface.

    Attributes:
        root: the part before them, from the address of the connection on.
        api: their version.
    """

    root: str
    api: Api

    def of(self, query: StructureQuery, *, stubs: bool = False, as_of: datetime | None = None) -> str:
        """Returns path and parameters of a query.

        Every part is written, because by default a registry returns the latest version alone.

        Args:
            query: what is requested.
            stubs: identities and names alone.
            as_of: the moment of the past to read (SDMX-REST 2.2).
        """
        parameters = {"detail": "allstubs"} if stubs else {}
        if as_of is not None:
            # The query builder cuts off what is below a second, within which a registry may do several things.
            parameters["asOf"] = as_of.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        asked = f"?{urlencode(parameters, safe=':')}" if parameters else ""
        return f"{self.root}{self._path(query)}{asked}"

    def _path(self, query: StructureQuery) -> str:
        if query.kind == REGISTRATION:
            return _registrations(query)

        from pysdmx.api.qb import ApiVersion, StructureType
        from pysdmx.api.qb import StructureQuery as PysdmxQuery
        from pysdmx.errors import Invalid

        version = ApiVersion.V2_0_0 if self.api == "v2" else ApiVersion.V1_5_0
        agency, identifier, of_version = (_quoted(part) for part in (query.agency, query.id, query.version))
        resource = self._resource(query.kind)
        try:
            kind = StructureType.ALL if resource == ANY else StructureType(resource)
            return PysdmxQuery(kind, agency, identifier, of_version).get_url(version, omit_defaults=True)
        except (ValueError, Invalid):
            # Registries have kinds of their own, which follow the same form.
            parts = (_ALL[self.api] if part == ANY else part for part in (agency, identifier, of_version))
            return "/".join(("/structure" if self.api == "v2" else "", quote(resource, safe=""), *parts))

    def _resource(self, kind: str) -> str:
        return kind if kind == ANY else _RESOURCES[self.api].get(kind, kind.lower())


def _registrations(query: StructureQuery) -> str:
    """Returns the query for one registration by its id, for those of an agency's agreements, or for all."""
    if query.id != ANY:
        return f"/registration/id/{quote(query.id, safe='@$')}"
    if query.agency != ANY:
        return f"/registration/provisionagreement/{_quoted(query.agency)}/*/*"
    return "/registration/provider/*/*"


def _quoted(part: str) -> str:
    return part if part == ANY else quote(part, safe="~+,$@")


_EMPTY_AT_MOST_BYTES = 1 << 16


class Contents:
    """Requests structures; every method makes one attempt.
    `probe` raises when the registry is not well.
    """

    def __init__(
        self,
        connection: RegistryConnection,
        transport: StructureDownloads,
        paths: StructurePaths,
        probe: Callable[[], None],
    ) -> None:
        self.who = f"{connection.WHO} at {connection.address}"
        self.transport = transport
        self.paths = paths
        self._probe = probe
        self._names: dict[str, str] = {}

    def fetch(self, path: str, media_type: str, into: Path, since: str | None = None) -> DownloadedFile | None:
        """Returns the response in a format, by the first of its names that the registry knows, or None."""
        known = self._names.get(media_type)
        for name in (known,) if known else accept_values(media_type):
            fetched = self.transport.fetch(StructureRequest(path, name, since), into)
            if fetched.status not in FORMAT_REFUSED:
                if fetched.size:
                    self._names[media_type] = name
                return fetched
        return None

    def read(
        self, query: StructureQuery, media_type: str, into: Path, *, since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        fetched = self.fetch(self.paths.of(query), media_type, into, since)
        if fetched is not None and fetched.status == NOT_MODIFIED and since is not None:
            return NotModified()
        return self.answer(fetched, query, media_type, into)

    def fetch_one(
        self, query: StructureQuery, media_type: str, into: Path, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        """Fetches one structure as it was; the reply may be empty."""
        return self.answer(self.fetch(self.paths.of(query, as_of=as_of), media_type, into), query, media_type, into)

    def check_not_found(self, fetched: DownloadedFile) -> None:
        """Checks that a "not found" is the registry's own response, and not that of something in its place."""
        if not fetched.is_registrys:
            self._probe()

    def is_empty(self, reply: Reply) -> bool:
        """Whether a message holds no structure at all."""
        if reply.size > _EMPTY_AT_MOST_BYTES or not splittable(reply.media_type):
            return False
        with reply.path.open("rb") as stream:
            try:
                return next(split(stream, reply.media_type), None) is None
            except StructureMessageError as error:
                raise self._broken(error) from error

    def check_filled(self, reply: Reply) -> None:
        """Checks that a message contains a structure.

        Raises:
            IncompleteReplyError: it contains none.
        """
        if self.is_empty(reply):
            raise self._without_message()

    def names_in(self, reply: Reply, query: StructureQuery, urn: str) -> frozenset[str]:
        """Returns what a message contains, by `same_artefact`; one that cannot be split, what was requested by kind."""
        if not splittable(reply.media_type):
            return frozenset({same_artefact(urn)} if query.kind != ANY else ())
        with reply.path.open("rb") as stream:
            try:
                return frozenset(same_artefact(each.urn) for each in split(stream, reply.media_type) if each.urn)
            except StructureMessageError as error:
                raise self._broken(error) from error

    def answer(
        self, fetched: DownloadedFile | None, query: StructureQuery, media_type: str, into: Path
    ) -> Reply | NotExpressible | None:
        """Returns what a response says; None for a request without one (406)."""
        if fetched is None:
            return NotExpressible(f"the registry does not return it as {media_type} (406)")
        if fetched.status == NOT_IMPLEMENTED:
            return NotExpressible(f"the registry does not return it as {media_type} (501)")
        if fetched.status == NO_CONTENT or (fetched.status == BAD_REQUEST and query.kind != ANY):
            return None
        if fetched.status == NOT_FOUND:
            self.check_not_found(fetched)
            return None
        if fetched.status in {BAD_REQUEST, NOT_MODIFIED}:
            raise ConfigurationError(
                f"{self.who} rejects the query {query} ({fetched.status})",
                next_step="set api (v1 or v2) in the extra of its connection, or check the proxy before it",
            )
        return self._reply(fetched, media_type, into)

    def _reply(self, fetched: DownloadedFile, media_type: str, into: Path) -> Reply:
        if not fetched.size or is_cut_off(into, media_type):
            raise self._without_message()
        other = other_format(into, media_type, fetched.media_type)
        if other is not None:
            raise FormatNotOfferedError(
                f"{self.who} returns {other[:80]} when {media_type} is requested",
                next_step="choose a media_type that it renders in the publication's source",
            )
        last_modified = fetched.headers.get("last-modified")
        return Reply(media_type, into, fetched.size, fetched.received_at, last_modified)

    def _without_message(self) -> IncompleteReplyError:
        return IncompleteReplyError(
            f"{self.who} returned an incomplete message",
            next_step="check the registry's log; nothing counts as deleted, and the run is retried",
        )

    def _broken(self, error: StructureMessageError) -> IncompleteReplyError:
        return IncompleteReplyError(
            f"{self.who} returned a broken message: {error.message}",
            next_step="check the registry's log; nothing counts as deleted, and the run is retried",
        )
