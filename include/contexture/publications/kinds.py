"""Which keys mean something for one kind of source alone, by section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

SourceKind = Literal["ngsi", "sdmx", "operations"]

REGISTRY_ONLY: Mapping[str, tuple[str, ...]] = {
    "source": ("select", "media_type", "registrations"),
    "topics": ("routes",),
    "message": ("media_type", "allow_lossy"),
}

BROKER_ONLY: Mapping[str, tuple[str, ...]] = {
    "source": (
        "api",
        "context",
        "service_path",
        "types",
        "ids",
        "id_pattern",
        "type_pattern",
        "query",
        "metadata_query",
        "attributes",
        "georel",
        "geometry",
        "coords",
        "notifier_connection",
        "page_size",
        "overlap_seconds",
        "suppress_unchanged",
        "service",
    ),
    "topics": (
        "cygnus_version",
        "data_model",
        "enable_lowercase",
        "compat",
        "enable_grouping",
        "grouping_rules",
        "enable_name_mappings",
        "name_mappings",
        "collision",
    ),
    "batches": ("batch_size", "batch_timeout"),
    "publish": ("transaction_records",),
    "quality": (
        "required_attributes",
        "attribute_types",
        "ranges",
        "fresh_within_seconds",
        "allowed_values",
        "stale_after_seconds",
        "syntax",
        "coerce_numbers",
        "allow_intervals",
        "models",
    ),
}


FOR_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "": ("name", "description", "schedule"),
    "source": ("kind",),
    "topics": ("naming", "topics", "partitions", "replication_factor", "keep", "config", "max_new_topics"),
    "batches": ("batch_ttl", "batch_retry_intervals"),
    "message": ("format", "envelope"),
    "publish": ("connection", "transaction_records", "transactional_id_prefix", "broker_wait_seconds"),
    "resync": ("on_startup", "on_config_change"),
    "retention": ("archive_days",),
    "notify": ("mail", "notifiers", "published_within_minutes"),
}
"""The keys that mean something for Contexture's own events, by section; all others don't."""


def is_meant(kind: SourceKind, section: str, key: str) -> bool:
    """Whether a key of a section means something for a source of that kind."""
    if kind == "operations":
        return key in FOR_OPERATIONS.get(section, ())
    foreign = BROKER_ONLY if kind == "sdmx" else REGISTRY_ONLY
    return key not in foreign.get(section, ())
