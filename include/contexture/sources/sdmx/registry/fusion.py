"""A Fusion Registry, or a Fusion Metadata Registry: structures, and the log of what happened to them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.registry import log
from contexture.sources.sdmx.registry.connection import PRODUCT, Product, RegistryConnection, product_in
from contexture.sources.sdmx.registry.interface import Log, LogPeriod, RegistryFlavour
from contexture.sources.sdmx.registry.log import LogRow
from contexture.sources.sdmx.registry.rest import RestRegistry
from contexture.sources.sdmx.registry.structures import StructurePaths
from contexture.sources.sdmx.registry.transport import OK, DownloadedFile, StructureDownloads, StructureRequest

SEARCH = "/ws/registry/tx/searchTransactions"
_ALL_URNS = "/ws/registry/tx/getAllUrns"
_HISTORY = "/ws/registry/tx/history"
_FEED = "/rss.xml"
_JSON = "application/json"
_PAGE, _GROWTH, _LONGEST = 100, 4, 25_600


class FusionRegistry(RestRegistry):
    """A Fusion (Metadata) Registry; see `Registry`. `product` is that of its product endpoint."""

    flavour: RegistryFlavour = "fmr"

    def __init__(
        self,
        connection: RegistryConnection,
        transport: StructureDownloads,
        paths: StructurePaths,
        product: Product,
        *,
        has_log: bool = True,
        has_registrations: bool = False,
    ) -> None:
        has_history = product.knows_as_of and paths.api == "v2"
        super().__init__(
            connection,
            transport,
            paths,
            (Format.FUSION_JSON.media_type,),
            has_history=has_history,
            has_registrations=has_registrations,
        )
        self._product = product
        self.has_log = has_log

    @property
    def product(self) -> str:
        """Such as `FMR 12.4.2`."""
        return str(self._product)

    def transactions(self, after: int | None) -> Log:
        """See `Registry.transactions`.

        The search shows which transactions there are. It is read backwards from the newest to the one that is known, so
        that none is missed where several share a moment. The feed shows what they did. A gap in the feed (it covers 24
        hours) is left to the caller, who compares what there is: the history of single structures would need a request
        for every URN there ever was.

        Raises:
            LogResetError: the log ends before `after`.
        """
        return self._transport.retrying(lambda: self._log(after))

    def period(self, start: datetime, end: datetime) -> LogPeriod:
        return self._transport.retrying(
            lambda: log.period(
                self._searched(lambda row: row.at < start)[0], start, end, registrations=self._has_registrations
            )
        )

    def all_urns(self) -> tuple[str, ...]:
        """Returns the URNs of all maintainable artefacts that there are or ever were.

        Raises:
            RegistryUnavailableError: the registry is away or ill.
            ConfigurationError: it does not return them.
        """
        return self._transport.retrying(lambda: log.urns_in(*self._json(_ALL_URNS)))

    def history(self, urn: str) -> tuple[int, ...]:
        """Returns the ids of the transactions that changed one structure, in order; no document specifies this request.

        Errors as `all_urns`.
        """
        rows = self._transport.retrying(lambda: log.rows_in(*self._json(f"{_HISTORY}?urn={quote(urn, safe='')}")))
        return tuple(sorted(row.id for row in rows))

    def _probe(self) -> None:
        # The request of the health check in its official composition.
        body, fetched = self._download(PRODUCT, _JSON)
        if fetched.status != OK or product_in(body) is None:
            raise RegistryUnavailableError(
                f"{self._connection.WHO} at {self.address} does not report which product it is ({fetched.status})",
                next_step="check whether it is being started or moved; the run is retried",
            )

    def _log(self, after: int | None) -> Log:
        rows, fetched, is_whole = self._searched(lambda row: after is None or row.id <= after)
        newest = log.newest_id(rows, after, self.address)
        if after is None or newest == after:
            return Log(newest)
        feed = log.parse_feed(self._fetched(_FEED, "application/rss+xml, application/xml;q=0.9")[0])
        joined = log.join_log(rows, feed, after, now=fetched.registry_time, is_whole=is_whole)
        return joined if self._has_registrations else log.without_registrations(joined)

    def _searched(self, is_known: Callable[[LogRow], bool]) -> tuple[tuple[LogRow, ...], DownloadedFile, bool]:
        """Returns the newest transactions, back to one that is known; whether nothing between can be missing."""
        size = _PAGE
        while True:
            body, fetched = self._json(f"{SEARCH}?orderDesc=true&max={size}")
            rows = log.rows_in(body, fetched)
            if any(is_known(row) for row in rows):
                return rows, fetched, True
            if len(rows) < size or size >= _LONGEST:
                return rows, fetched, False
            size *= _GROWTH

    def _json(self, path: str) -> tuple[bytes, DownloadedFile]:
        return self._fetched(path, _JSON)

    def _fetched(self, path: str, accept: str) -> tuple[bytes, DownloadedFile]:
        body, fetched = self._download(path, accept)
        if fetched.status != OK:
            raise ConfigurationError(
                f"{self._connection.WHO} at {self.address} does not return {path.partition('?')[0]} ({fetched.status})",
                next_step="allow the connection's user to read the log, or set source.flavour: generic",
            )
        if not body:
            raise IncompleteReplyError(
                f"{self._connection.WHO} at {self.address} returns an empty response to {path.partition('?')[0]}",
                next_step="check the registry's log; the run is retried",
            )
        return body, fetched

    def _download(self, path: str, accept: str) -> tuple[bytes, DownloadedFile]:
        with tempfile.TemporaryDirectory(prefix="contexture-log-") as folder:
            into = Path(folder) / "answer"
            fetched = self._transport.fetch(StructureRequest(path, accept), into)
            return (into.read_bytes() if fetched.size else b""), fetched
