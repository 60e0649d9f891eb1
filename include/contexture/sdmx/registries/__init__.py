"""Structure registries: what they hold, in any format they render, and what happened to it."""

from __future__ import annotations

from contexture.sdmx.registries.connection import RegistryConnection, registry_connection
from contexture.sdmx.registries.errors import (
    FormatNotOfferedError,
    IncompleteReplyError,
    LogResetError,
    RegistryUnavailableError,
    ReplyTooLargeError,
)
from contexture.sdmx.registries.forms import read_in, read_one_in
from contexture.sdmx.registries.fusion import FusionRegistry
from contexture.sdmx.registries.generic import SdmxRegistry
from contexture.sdmx.registries.media_types import splittable
from contexture.sdmx.registries.names import named_in, same_artefact
from contexture.sdmx.registries.opening import open_registry
from contexture.sdmx.registries.port import (
    Held,
    Log,
    NotExpressible,
    NotModified,
    Period,
    Query,
    Registry,
    RegistryTransaction,
    Reply,
)

__all__ = [
    "FormatNotOfferedError",
    "FusionRegistry",
    "Held",
    "IncompleteReplyError",
    "Log",
    "LogResetError",
    "NotExpressible",
    "NotModified",
    "Period",
    "Query",
    "Registry",
    "RegistryConnection",
    "RegistryTransaction",
    "RegistryUnavailableError",
    "Reply",
    "ReplyTooLargeError",
    "SdmxRegistry",
    "named_in",
    "open_registry",
    "read_in",
    "read_one_in",
    "registry_connection",
    "same_artefact",
    "splittable",
]
