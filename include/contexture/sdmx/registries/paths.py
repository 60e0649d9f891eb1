"""Where structures are asked for, in version 1 or 2 of SDMX-REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote, urlencode

from contexture.sdmx.registries.port import ANY, Query

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
        root: what stands before them, from the address of the connection on.
        api: their version.
    """

    root: str
    api: Api

    def of(self, query: Query, *, stubs: bool = False, as_of: datetime | None = None) -> str:
        """Path and parameters of a question.

        Every part is said: by default a registry answers the latest version alone.

        Args:
            query: what is asked for.
            stubs: identities and names alone.
            as_of: the moment it is wanted of (SDMX-REST 2.2).
        """
        parameters = {"detail": "allstubs"} if stubs else {}
        if as_of is not None:
            # The query builder cuts off what is below a second, within which a registry may do several things.
            parameters["asOf"] = as_of.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        asked = f"?{urlencode(parameters, safe=':')}" if parameters else ""
        return f"{self.root}{self._path(query)}{asked}"

    def _path(self, query: Query) -> str:
        from pysdmx.api.qb import ApiVersion, StructureQuery, StructureType
        from pysdmx.errors import Invalid

        version = ApiVersion.V2_0_0 if self.api == "v2" else ApiVersion.V1_5_0
        agency, identifier, of_version = (_quoted(part) for part in (query.agency, query.id, query.version))
        resource = self._resource(query.kind)
        try:
            kind = StructureType.ALL if resource == ANY else StructureType(resource)
            return StructureQuery(kind, agency, identifier, of_version).get_url(version, omit_defaults=True)
        except (ValueError, Invalid):
            # Registries have kinds of their own, which follow the same form.
            parts = (_ALL[self.api] if part == ANY else part for part in (agency, identifier, of_version))
            return "/".join(("/structure" if self.api == "v2" else "", quote(resource, safe=""), *parts))

    def _resource(self, kind: str) -> str:
        return kind if kind == ANY else _RESOURCES[self.api].get(kind, kind.lower())


def _quoted(part: str) -> str:
    return part if part == ANY else quote(part, safe="~+,$@")
