"""Testing a connection to a structure registry, step by step."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from contexture.cli.trial_outcome import Outcome, Step, Told, untold
from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.sources.http.connection import ConnectionFields
from contexture.sources.http.transport import Patience
from contexture.sources.sdmx import Format
from contexture.sources.sdmx.registry import (
    FusionRegistry,
    Held,
    RegistryConnection,
    Reply,
    SdmxRegistry,
    open_registry,
    registry_connection,
)
from contexture.sources.sdmx.registry.connection import PRODUCT, product_in
from contexture.sources.sdmx.registry.transport import Transport, tried

_ONCE = Patience(attempts=1, first_wait_seconds=0.1, longest_wait_seconds=0.1)
_AT_MOST_TRIED = 20
_DEFAULT = Format.SDMX_ML_2_1.media_type
_SAID = frozenset({"flavour", "api", "reply_bytes"})
Found = TypeVar("Found")


class RegistryTrial:
    """The test of one connection.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        media_type: the format to try; SDMX-ML 2.1 where it is empty.
        timeout_seconds: for each step.
        told: gets each step as soon as it is done.
    """

    def __init__(
        self,
        connection_id: str,
        fields: ConnectionFields,
        media_type: str,
        timeout_seconds: float,
        told: Told = untold,
    ) -> None:
        self._told = told
        self._id = connection_id
        self._fields = fields
        self._media_type = media_type or _DEFAULT
        self._seconds = timeout_seconds
        self._steps: list[Step] = []
        self._unreachable = False

    @property
    def is_said(self) -> bool:
        """Whether the connection itself says that it leads to a registry."""
        return bool(_SAID & self._fields.extra.keys())

    def is_fusion(self) -> bool:
        """Whether a Fusion (Metadata) Registry says so there."""
        try:
            network = Transport(self._connection(), _ONCE)
            try:
                return product_in(tried(network, PRODUCT).body) is not None
            finally:
                network.close()
        except ContextureError:
            return False

    def outcome(self) -> Outcome:
        """What every step found; the ones after a failure are not tried.

        Raises:
            ConfigurationError: the fields lead to no connection.
        """
        connection = self._connection()
        self._steps, self._unreachable = [], False
        registry = self._step("reach", lambda: _reached(connection), lambda found: f"{found.address} answers")
        if registry is None:
            self._not_tried("product", "list", "credentials", "structure")
        else:
            with registry:
                self._look_into(registry, connection)
        return Outcome(
            connection=self._id,
            kind=self._fields.kind,
            target=connection.address,
            unreachable=self._unreachable,
            steps=tuple(self._steps),
        )

    def _look_into(self, registry: FusionRegistry | SdmxRegistry, connection: RegistryConnection) -> None:
        self._step("product", lambda: registry, _product)
        held = self._step("list", lambda: registry.held(self._media_type), _listed)
        if held is None:
            self._not_tried("credentials", "structure")
            return
        self._step("credentials", lambda: self._shown(connection, held), str)
        self._step("structure", lambda: self._structure(registry, held), str)

    def _shown(self, connection: RegistryConnection, held: Held) -> str:
        if connection.is_public:
            return "none: what is public is read"
        anybody = replace(
            connection, base_url=connection.address, headers={}, grant=None, certificate="", certificate_key=""
        )
        try:
            with _reached(anybody) as registry:
                public = set(registry.held(self._media_type).urns)
        except ContextureError:
            return "taken: without them the registry lists nothing"
        more = len(set(held.urns) - public)
        return f"taken: structures that only they show: {more:,}" if more else "not refused: the public sees the same"

    def _structure(self, registry: FusionRegistry | SdmxRegistry, held: Held) -> str:
        reason = ""
        with tempfile.TemporaryDirectory(prefix="contexture-trial-") as folder:
            for urn in held.urns[:_AT_MOST_TRIED]:
                found = registry.read_one(urn, self._media_type, Path(folder) / "structure")
                if isinstance(found, Reply):
                    return f"{urn} as {self._media_type}: {found.size:,} bytes"
                reason = reason or ("it is gone" if found is None else found.reason)
        raise ConfigurationError(
            f"none of {min(len(held.urns), _AT_MOST_TRIED)} structures comes as {self._media_type}: {reason}",
            next_step="choose a media type that the registry renders",
        )

    def _connection(self) -> RegistryConnection:
        found = registry_connection(self._id, self._fields)
        return replace(found, timeout_seconds=self._seconds)

    def _step(self, name: str, call: Callable[[], Found], tell: Callable[[Found], str]) -> Found | None:
        started = time.monotonic()
        found: Found | None = None
        try:
            found = call()
            detail, passed = tell(found), True
        except ContextureError as error:
            detail, passed = str(error), False
            self._unreachable = self._unreachable or (name == "reach" and isinstance(error, RetriableError))
        self._tell(Step(name=name, passed=passed, detail=detail, seconds=time.monotonic() - started))
        return found

    def _not_tried(self, *names: str) -> None:
        for name in names:
            self._tell(Step(name=name, passed=None, detail="an earlier step failed", seconds=0.0))

    def _tell(self, step: Step) -> None:
        self._steps.append(step)
        self._told(step)


def _reached(connection: RegistryConnection) -> FusionRegistry | SdmxRegistry:
    return open_registry(connection, patience=_ONCE)


def _product(registry: FusionRegistry | SdmxRegistry) -> str:
    log = "its log tells what changes" if registry.has_log else "without a log: changes are found by comparing"
    past = "; what structures were at any moment can be read" if registry.has_history else ""
    return f"{registry.product}, flavour {registry.flavour}; {log}{past}"


def _listed(held: Held) -> str:
    unnamed = f", and {held.unnamed} without a URN" if held.unnamed else ""
    return f"{len(held.urns):,} structures{unnamed}"
