"""Any registry that speaks SDMX-REST: no log, no history, only what it holds now."""

from __future__ import annotations

from datetime import datetime

from contexture.errors import DefectError
from contexture.sdmx.formats import Format
from contexture.sdmx.registries.answers import NOT_FOUND, OK
from contexture.sdmx.registries.connection import RegistryConnection
from contexture.sdmx.registries.errors import RegistryUnavailableError
from contexture.sdmx.registries.paths import Api, StructurePaths
from contexture.sdmx.registries.port import Log, Period, Query, RegistryFlavour
from contexture.sdmx.registries.rest import RestRegistry
from contexture.sdmx.registries.transport import Transport
from contexture.sdmx.registries.trying import SMALL, tried

LIST_FORMATS: dict[Api, str] = {"v1": Format.SDMX_ML_2_1.media_type, "v2": Format.SDMX_ML_3_0.media_type}
"""What a registry of each version of SDMX-REST renders, if anything."""


class SdmxRegistry(RestRegistry):
    """A structure registry that offers SDMX-REST and nothing else; see `Registry`.

    Args:
        connection: where it is.
        transport: asks it; closed with this.
        paths: its structure queries.
        sign_of_life: a small question that it answered.
    """

    flavour: RegistryFlavour = "generic"
    has_log = False

    def __init__(
        self, connection: RegistryConnection, transport: Transport, paths: StructurePaths, sign_of_life: Query = SMALL
    ) -> None:
        super().__init__(connection, transport, paths, (LIST_FORMATS[paths.api],))
        self._sign_of_life = paths.of(sign_of_life, stubs=True)
        self._api = paths.api

    @property
    def product(self) -> str:
        """The interface is all that is known of it."""
        return f"SDMX-REST {self._api.removeprefix('v')}"

    def transactions(self, after: int | None) -> Log:
        """There is no log to be told."""
        raise DefectError(
            f"a log was asked of {self.address}, which has none (after {after})", next_step="report this error"
        )

    def period(self, start: datetime, end: datetime) -> Period:
        """There is no log to be told."""
        raise DefectError(
            f"a log was asked of {self.address}, which has none (from {start} to {end})", next_step="report this error"
        )

    def _probe(self) -> None:
        attempt = tried(self._transport, self._sign_of_life)
        if attempt.status != OK and not (attempt.status == NOT_FOUND and attempt.is_registrys):
            raise RegistryUnavailableError(
                f"{self._connection.WHO} at {self.address} no longer answers structure queries ({attempt.status})",
                next_step="look whether it is being started or moved; the run is retried",
            )
