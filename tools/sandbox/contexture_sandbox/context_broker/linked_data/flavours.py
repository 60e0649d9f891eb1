"""How three brokers implement one specification; the test of each habit names its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["creation", "id"]


@dataclass(frozen=True, slots=True)
class Flavour:
    """The habits of one broker.

    Attributes:
        default_limit, maximum_limit: entities in a page when none is asked for, and at most.
        over_limit: status, error and words of the refusal of a larger page.
        too_broad: the title of the refusal of a query without any selector; None where such a query is answered.
        order: how entities follow each other.
        entity_maps: whether it freezes the ids of a query (clause 5.14).
        finds_by_time: False answers a query by `modifiedAt` or `createdAt` with nothing at all.
        empty_without_database: without its database it shows nothing, and says so only when asked for subscriptions, as
            Orion does (measured there; that Orion-LD does is concluded from its being built on Orion).
        tenants_declared: a tenant that was never written to is refused.
        version: the body of `/version`; None where there is no such resource.
        info: the resource only this broker has, with its body.
        history: whether it shows how entities changed; Orion-LD does where Mintaka serves the same address.
        history_instances: of one attribute in an answer, at most.
    """

    name: str
    default_limit: int
    maximum_limit: int
    over_limit: tuple[int, str, str]
    too_broad: str | None
    order: Order
    entity_maps: bool = False
    finds_by_time: bool = True
    empty_without_database: bool = False
    tenants_declared: bool = True
    version: dict[str, str] | None = None
    info: tuple[tuple[str, ...], dict[str, object]] | None = None
    history: bool = False
    history_instances: int = 100


_ORION_LD = (400, "BadRequestData", "Bad value for pagination limit: {limit} (max: {maximum})")
_SCORPIO = (403, "TooManyResults", "The limit {limit} is above {maximum}")
_STELLIO = (403, "TooManyResults", "{limit} results were asked for, at most {maximum} are supported")

FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour(
            "orion-ld", 20, 1000, _ORION_LD, "too broad query", "creation", empty_without_database=True,
            version={"orionld version": "1.10.0", "based on orion": "1.15.0-next"},
        ),
        Flavour(
            "orion-ld-1.4", 20, 1000, _ORION_LD, "too broad query", "creation",
            finds_by_time=False, empty_without_database=True,
            version={"orionld version": "1.4.0", "based on orion": "1.15.0-next"},
        ),
        Flavour(
            "scorpio", 50, 1000, _SCORPIO, "Too broad query", "creation",
            entity_maps=True, tenants_declared=False, history=True,
            info=(("scorpio", "v1", "info", "health"), {"Status of Querymanager": "Up and running"}),
        ),
        Flavour(
            "stellio", 30, 100, _STELLIO, "Too broad query", "id", history=True,
            info=(("actuator", "info"), {"build": {"group": "com.egm.stellio", "artifact": "api-gateway"}}),
        ),
    )
}  # fmt: skip
