"""Structure registries: their structures in any format they write, and the log of their changes."""

from __future__ import annotations

from contexture.sources.sdmx.registry.connect import open_registry
from contexture.sources.sdmx.registry.connection import RegistryConnection, registry_connection
from contexture.sources.sdmx.registry.fusion import FusionRegistry
from contexture.sources.sdmx.registry.interface import (
    FormatNotOfferedError,
    Log,
    LogPeriod,
    LogResetError,
    NotExpressible,
    NotModified,
    Registry,
    RegistryTransaction,
    Reply,
    StructureEntry,
    StructureQuery,
    read_first_supported,
    read_one_in,
)
from contexture.sources.sdmx.registry.rest import SdmxRegistry

__all__ = [
    "FormatNotOfferedError",
    "FusionRegistry",
    "Log",
    "LogPeriod",
    "LogResetError",
    "NotExpressible",
    "NotModified",
    "Registry",
    "RegistryConnection",
    "RegistryTransaction",
    "Reply",
    "SdmxRegistry",
    "StructureEntry",
    "StructureQuery",
    "open_registry",
    "read_first_supported",
    "read_one_in",
    "registry_connection",
]
