"""Structure registries: their structures in any format they write, and the log of their changes."""

from __future__ import annotations

from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError, ReplyTooLargeError
from contexture.sources.sdmx.formats import named_in, same_artefact, splittable
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
    "IncompleteReplyError",
    "Log",
    "LogPeriod",
    "LogResetError",
    "NotExpressible",
    "NotModified",
    "Registry",
    "RegistryConnection",
    "RegistryTransaction",
    "RegistryUnavailableError",
    "Reply",
    "ReplyTooLargeError",
    "SdmxRegistry",
    "StructureEntry",
    "StructureQuery",
    "named_in",
    "open_registry",
    "read_first_supported",
    "read_one_in",
    "registry_connection",
    "same_artefact",
    "splittable",
]
