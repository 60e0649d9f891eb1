"""Checking the connection to a source step by step: context brokers and structure registries."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import httpx

from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.operations import environment
from contexture.sources.http.connection import ConnectionFields
from contexture.sources.http.transport import RetryBudget
from contexture.sources.sdmx import Format
from contexture.sources.sdmx.registry import (
    FusionRegistry,
    RegistryConnection,
    Reply,
    SdmxRegistry,
    StructureEntry,
    open_registry,
    registry_connection,
)
from contexture.sources.sdmx.registry.connection import PRODUCT, product_in
from contexture.sources.sdmx.registry.transport import StructureDownloads, probe_address
from contexture.storage.documents import StoredDocument

if TYPE_CHECKING:
    from datetime import datetime

    from contexture.sources.http.connection import BrokerConnection
    from contexture.sources.ngsi.broker import Flavour
    from contexture.sources.ngsi.entity import EntityForm


class CheckStep(StoredDocument):
    """One step; `passed` is None when it was not tried, `remedy` is what to do."""

    name: str
    passed: bool | None
    detail: str
    seconds: float
    remedy: str = ""

    @property
    def verdict(self) -> str:
        """`works`, `failed` or `not tried`."""
        return {True: "works", False: "failed", None: "not tried"}[self.passed]

    def sentence(self) -> str:
        """The step on one line: its verdict, its time, what was found and what to do."""
        remedy = f" Next: {self.remedy}." if self.remedy else ""
        return f"{self.name}: {self.verdict} ({self.seconds:.2f} s): {self.detail}.{remedy}"


class CheckOutcome(StoredDocument):
    """What the test found. `target`: what the connection leads to, without secrets."""

    connection: str
    kind: str
    target: str
    unreachable: bool
    steps: tuple[CheckStep, ...]

    @property
    def passed(self) -> bool:
        """Whether something was reached, and no step failed."""
        return not self.unreachable and not any(step.passed is False for step in self.steps)

    def text(self) -> str:
        """All of it for people, a line for the whole and one for each step; what failed comes first."""
        in_order = sorted(self.steps, key=lambda step: _URGENCY[step.passed])
        verdict = "it works" if self.passed else "it cannot be reached" if self.unreachable else "it does not work"
        return "\n".join([f"{self.target}: {verdict}.", *(step.sentence() for step in in_order)])


_URGENCY = {False: 0, None: 1, True: 2}


StepReport = Callable[[CheckStep], None]
"""Receives each step as soon as it is done."""


def ignore_step(step: CheckStep) -> None:
    """Ignores a step."""


class BrokerCheck:
    """The test of one connection.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        service: the tenant to ask.
        timeout_seconds: for each step.

    Attributes:
        silence: why nothing answered at all, once it was tried; None where something did.
    """

    def __init__(self, connection_id: str, fields: ConnectionFields, service: str, timeout_seconds: float) -> None:
        self._id = connection_id
        self._fields = fields
        self._service = service
        self._seconds = timeout_seconds
        self.silence: str | None = None

    def outcome(self) -> CheckOutcome:
        """What every step found.

        Raises:
            ConfigurationError: the fields lead to no connection.
        """
        broker = replace(environment.context_broker(self._id, self._fields), timeout_seconds=self._seconds)
        started, unreachable, steps = time.monotonic(), False, []
        try:
            flavour, api, clock = identify_broker(broker, self._service)
            detail, passed = f"its database responds; its clock shows {clock.isoformat()}", True
            steps = [
                CheckStep(name="flavour", passed=True, detail=f"{flavour}, queried by source.api {api}", seconds=0.0)
            ]
        except ContextureError as error:
            detail, passed, unreachable = str(error), False, isinstance(error, RetriableError)
            self.silence = type(error.__cause__).__name__ if isinstance(error.__cause__, httpx.TransportError) else None
        probe = CheckStep(name="probe", passed=passed, detail=detail, seconds=time.monotonic() - started)
        return CheckOutcome(
            connection=self._id,
            kind=self._fields.kind,
            target=broker.address,
            unreachable=unreachable,
            steps=(probe, *steps),
        )


def identify_broker(broker: BrokerConnection, service: str) -> tuple[Flavour, EntityForm, datetime]:
    """Returns which broker it is, the interface that it responds by, and its clock.

    Raises:
        ContextureError: it cannot be reached, or responds by neither interface.
    """
    from contexture.sources.http.transport import RetryBudget
    from contexture.sources.ngsi.broker import SPEAKS_LINKED_DATA
    from contexture.sources.ngsi.connect import Dialect, detect, open_broker

    budget = RetryBudget(attempts=1, first_wait_seconds=0.1, longest_wait_seconds=0.1)
    flavour = detect(broker, budget=budget)

    def ask(api: EntityForm) -> tuple[Flavour, EntityForm, datetime]:
        with open_broker(broker, service, Dialect(api, flavour), budget=budget) as client:
            return flavour, api, client.probe()

    if flavour in SPEAKS_LINKED_DATA:
        return ask("ngsi-ld")
    try:
        return ask("ngsiv2")
    except ConfigurationError:
        if flavour != "unknown":
            raise
    # Anyone who hides which broker it is may speak either.
    return ask("ngsi-ld")


_ONCE = RetryBudget(attempts=1, first_wait_seconds=0.1, longest_wait_seconds=0.1)
_AT_MOST_TRIED = 20
_DEFAULT = Format.SDMX_ML_2_1.media_type
_SAID = frozenset({"flavour", "api", "reply_bytes"})
Found = TypeVar("Found")


class RegistryCheck:
    """The test of one connection.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        media_type: the format to try; SDMX-ML 2.1 where it is empty.
        timeout_seconds: for each step.
        on_step: receives each step as soon as it is done.
    """

    def __init__(
        self,
        connection_id: str,
        fields: ConnectionFields,
        media_type: str,
        timeout_seconds: float,
        on_step: StepReport = ignore_step,
    ) -> None:
        self._on_step = on_step
        self._id = connection_id
        self._fields = fields
        self._media_type = media_type or _DEFAULT
        self._seconds = timeout_seconds
        self._steps: list[CheckStep] = []
        self._unreachable = False

    @property
    def is_said(self) -> bool:
        """Whether the connection itself says that it leads to a registry."""
        return bool(_SAID & self._fields.extra.keys())

    def is_fusion(self) -> bool:
        """Whether a Fusion (Metadata) Registry says so there."""
        try:
            network = StructureDownloads(self._connection(), _ONCE)
            try:
                return product_in(probe_address(network, PRODUCT).body) is not None
            finally:
                network.close()
        except ContextureError:
            return False

    def outcome(self) -> CheckOutcome:
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
        return CheckOutcome(
            connection=self._id,
            kind=self._fields.kind,
            target=connection.address,
            unreachable=self._unreachable,
            steps=tuple(self._steps),
        )

    def _look_into(self, registry: FusionRegistry | SdmxRegistry, connection: RegistryConnection) -> None:
        self._step("product", lambda: registry, _product)
        held = self._step("list", lambda: registry.list_structures(self._media_type), _listed)
        if held is None:
            self._not_tried("credentials", "structure")
            return
        self._step("credentials", lambda: self._shown(connection, held), str)
        self._step("structure", lambda: self._structure(registry, held), str)

    def _shown(self, connection: RegistryConnection, held: StructureEntry) -> str:
        if connection.is_public:
            return "none: what is public is read"
        anonymous = replace(
            connection, base_url=connection.address, headers={}, grant=None, certificate="", certificate_key=""
        )
        try:
            with _reached(anonymous) as registry:
                public = set(registry.list_structures(self._media_type).urns)
        except ContextureError:
            return "accepted: without them the registry lists nothing"
        more = len(set(held.urns) - public)
        return (
            f"accepted: only with them these structures are visible: {more:,}"
            if more
            else "not refused: without them the same structures are visible"
        )

    def _structure(self, registry: FusionRegistry | SdmxRegistry, held: StructureEntry) -> str:
        reason = ""
        with tempfile.TemporaryDirectory(prefix="contexture-trial-") as folder:
            for urn in held.urns[:_AT_MOST_TRIED]:
                found = registry.read_one(urn, self._media_type, Path(folder) / "structure")
                if isinstance(found, Reply):
                    return f"{urn} as {self._media_type}: {found.size:,} bytes"
                reason = reason or ("it was deleted" if found is None else found.reason)
        raise ConfigurationError(
            f"none of {min(len(held.urns), _AT_MOST_TRIED)} structures is available as {self._media_type}: {reason}",
            next_step="choose a media type that the registry renders",
        )

    def _connection(self) -> RegistryConnection:
        found = registry_connection(self._id, self._fields)
        return replace(found, timeout_seconds=self._seconds)

    def _step(self, name: str, call: Callable[[], Found], describe: Callable[[Found], str]) -> Found | None:
        started = time.monotonic()
        found: Found | None = None
        try:
            found = call()
            detail, passed = describe(found), True
        except ContextureError as error:
            detail, passed = str(error), False
            self._unreachable = self._unreachable or (name == "reach" and isinstance(error, RetriableError))
        self._report(CheckStep(name=name, passed=passed, detail=detail, seconds=time.monotonic() - started))
        return found

    def _not_tried(self, *names: str) -> None:
        for name in names:
            self._report(CheckStep(name=name, passed=None, detail="an earlier step failed", seconds=0.0))

    def _report(self, step: CheckStep) -> None:
        self._steps.append(step)
        self._on_step(step)


def _reached(connection: RegistryConnection) -> FusionRegistry | SdmxRegistry:
    return open_registry(connection, budget=_ONCE)


def _product(registry: FusionRegistry | SdmxRegistry) -> str:
    log = "its log lists what changes" if registry.has_log else "without a log: changes are found by comparing"
    past = "; what structures were at any moment can be read" if registry.has_history else ""
    return f"{registry.product}, flavour {registry.flavour}; {log}{past}"


def _listed(held: StructureEntry) -> str:
    unnamed = f", and {held.unnamed} without a URN" if held.unnamed else ""
    return f"{len(held.urns):,} structures{unnamed}"
