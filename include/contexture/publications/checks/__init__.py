"""Checks of combinations: what the keys of a publication exclude together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from contexture.publications.checks.delivery import DELIVERY_OF_ENTITIES, DELIVERY_OF_STRUCTURES
from contexture.publications.checks.ngsi import LINKED_DATA_CHECKS
from contexture.publications.checks.quality import QUALITY_OF_ENTITIES, QUALITY_OF_STRUCTURES
from contexture.publications.checks.records import RECORDS_OF_ENTITIES, RECORDS_OF_STRUCTURES, Findings
from contexture.publications.fields import PublicationModel
from contexture.publications.problems import Location, ModelProblem, looks_secret

if TYPE_CHECKING:
    from contexture.publications.publication import NgsiPublication, OperationsPublication, Publication, SdmxPublication

Check = Callable[[Any], Findings]
"""Yields the problems of a publication of one kind."""

_KIND = (("source", "kind"),)
_CONVERTIBLE = re.compile(
    r"application/vnd\.sdmx\.structure\+(?:xml;version=(?:2\.1|3\.[01](?:\.0)?)|json;version=2\.[01](?:\.0)?)"
)
_KINDS = re.compile(r"[,.\s]+")
_LEGACY_RELEASE = re.compile(r"0\.|1\.0*[0-2](\.|$)")


def _service(publication: NgsiPublication) -> Findings:
    if "service" not in publication.source.model_fields_set:
        yield ModelProblem(
            ("source", "service"),
            "`service` is missing: a context broker has no list of them",
            'write the Fiware-Service, or "" for the broker\'s default tenant',
            (("source", "kind"),),
        )


def _geography(publication: NgsiPublication) -> Findings:
    source = publication.source
    parts = {"georel": source.georel, "geometry": source.geometry, "coords": source.coords}
    missing = [name for name, value in parts.items() if value is None]
    if missing and len(missing) < len(parts):
        present = next(name for name in parts if name not in missing)
        message = f"a geographical query needs georel, geometry and coords; missing: {', '.join(missing)}"
        involved = tuple(("source", name) for name in parts)
        yield ModelProblem(("source", present), message, "write all three, or none", involved)


def _lists_and_patterns(publication: NgsiPublication) -> Findings:
    source = publication.source
    for listed, pattern in (("types", "type_pattern"), ("ids", "id_pattern")):
        if getattr(source, listed) and getattr(source, pattern) is not None:
            message = f"`{pattern}` and `{listed}` exclude each other: brokers take one of them"
            yield ModelProblem(("source", pattern), message, "leave one out", (("source", listed),))


def _required_attributes(publication: NgsiPublication) -> Findings:
    selected = publication.source.attributes
    for name in publication.quality.required_attributes:
        if selected and name not in selected:
            yield ModelProblem(
                ("quality", "required_attributes"),
                f"{name!r} is required but not read: `source.attributes` leaves it out",
                "add it to source.attributes",
                (("source", "attributes"),),
            )


def _entity_limits(publication: Publication) -> Findings:
    quality = publication.quality
    if quality.maximum_entities is not None and quality.minimum_entities > quality.maximum_entities:
        message = f"minimum_entities {quality.minimum_entities} is above maximum_entities {quality.maximum_entities}"
        yield ModelProblem(
            ("quality", "minimum_entities"), message, "swap or change them", (("quality", "maximum_entities"),)
        )


_TOPIC_KEYS: tuple[Location, ...] = (("topics", "naming"), ("topics", "topics"), ("topics", "routes"))


def _fixed_topics(publication: NgsiPublication) -> Findings:
    if publication.topics.naming == "fixed" and not publication.topics.topics:
        yield ModelProblem(
            ("topics", "naming"), "`naming: fixed` needs the names", "add `topics: [NAME]` to this section", _TOPIC_KEYS
        )


def _topics_of_structures(publication: SdmxPublication) -> Findings:
    topics, kind = publication.topics, ("source", "kind")
    if not topics.topics and not topics.routes:
        message, hint = "no topic is set for the structures", "add `topics: [NAME]` or `routes` to the section `topics`"
        yield ModelProblem(("topics",), message, hint, (*_TOPIC_KEYS, kind))


def _names_without_use(publication: NgsiPublication) -> Findings:
    topics = publication.topics
    if topics.naming != "fixed" and topics.topics:
        message = f"`topics` needs `naming: fixed`; `naming: {topics.naming}` makes its own names"
        yield ModelProblem(("topics", "topics"), message, "write `naming: fixed`, or leave the names out", _TOPIC_KEYS)


def _default_tenant(publication: NgsiPublication) -> Findings:
    topics = publication.topics
    nameless = not publication.source.service and not topics.enable_name_mappings
    if topics.naming != "fixed" and topics.data_model == "dm-by-service" and nameless:
        message = "`data_model: dm-by-service` would give the topic of the default tenant an empty name"
        involved = (("source", "service"), ("topics", "naming"))
        hint = "choose another data_model, `naming: fixed`, or name mappings that give the service a name"
        yield ModelProblem(("topics", "data_model"), message, hint, involved)


def _name_schemes(publication: NgsiPublication) -> Findings:
    topics = publication.topics
    if topics.naming in {"injective", "fixed"} and topics.cygnus_version is not None:
        message = f"`cygnus_version` has no effect on `naming: {topics.naming}`"
        yield ModelProblem(("topics", "cygnus_version"), message, "leave it out", (("topics", "naming"),))
    elif topics.naming == "cygnus-legacy" and not _LEGACY_RELEASE.match(topics.cygnus_version or "1.2"):
        message = f"Cygnus {topics.cygnus_version} did not name topics in the legacy way of 1.2 and before"
        yield ModelProblem(("topics", "cygnus_version"), message, "write `naming: cygnus`", (("topics", "naming"),))
    if topics.naming in {"injective", "fixed"} and topics.collision != "warn":
        message = f"`collision: {topics.collision}` has no effect on `naming: {topics.naming}`"
        yield ModelProblem(("topics", "collision"), message, "leave it out", (("topics", "naming"),))
    if topics.naming == "injective" and topics.enable_lowercase:
        message = "`enable_lowercase: true` would allow several identities to share a topic of `naming: injective`"
        yield ModelProblem(("topics", "enable_lowercase"), message, "leave it out", (("topics", "naming"),))


def _name_files(publication: NgsiPublication) -> Findings:
    topics = publication.topics
    for flag, file in (("enable_grouping", "grouping_rules"), ("enable_name_mappings", "name_mappings")):
        enabled, named = getattr(topics, flag), getattr(topics, file) is not None
        if enabled and topics.naming == "fixed":
            message = f"`{flag}: true` has no effect on `naming: fixed`"
            yield ModelProblem(
                ("topics", flag), message, "leave it out, or write `naming: cygnus`", (("topics", "naming"),)
            )
        elif enabled and not named:
            yield ModelProblem(("topics", flag), f"`{flag}: true` needs a file", f"add `{file}: FILE.json`")
        elif named and not enabled:
            yield ModelProblem(("topics", file), f"`{file}` has no effect", f"write `{flag}: true`, or leave it out")


def _secret_configuration(publication: Publication) -> Findings:
    for key in publication.topics.config:
        if looks_secret(key):
            message = f"`{key}` looks like a secret; a secret belongs in an Airflow connection"
            hint = "remove it here, and change it if this file was ever shared"
            yield ModelProblem(("topics", "config", key), message, hint, at_key=True)


def _topic_configuration(publication: Publication) -> Findings:
    topics = publication.topics
    if "cleanup.policy" in topics.config:
        message = "`keep` decides the cleanup policy"
        hint = "use `keep: latest` (compact) or `keep: history` (delete)"
        yield ModelProblem(("topics", "config", "cleanup.policy"), message, hint, (("topics", "keep"),))
    for key in ("max.message.bytes", "min.insync.replicas"):
        if not topics.config.get(key, "1").isdecimal():
            yield ModelProblem(("topics", "config", key), f"{key} {topics.config[key]!r}", "expected a whole number")
    in_sync = topics.config.get("min.insync.replicas", "1")
    if in_sync.isdecimal() and topics.replication_factor and int(in_sync) > topics.replication_factor:
        message = f"min.insync.replicas {in_sync} is above replication_factor {topics.replication_factor}"
        involved = (("topics", "replication_factor"), ("topics", "config"))
        yield ModelProblem(
            ("topics", "config", "min.insync.replicas"), f"{message}: no record could be sent", "lower it", involved
        )


def _one_sender(publication: SdmxPublication) -> Findings:
    shards = publication.publish.shards
    if shards != 1:
        message = f"`shards: {shards}`: a registry's transactions have one order, so they have one sender"
        yield ModelProblem(("publish", "shards"), message, "leave it out, or write `shards: 1`", _KIND)


def _conversion(publication: SdmxPublication) -> Findings:
    media_type = publication.source.media_type
    plain = re.sub(r"[\s\"]", "", media_type or "").lower()
    if publication.message.allow_lossy and plain and not _CONVERTIBLE.fullmatch(plain):
        message = f"`allow_lossy: true`: nothing can be converted into {media_type}"
        hint = "leave it out, or set source.media_type to SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0 or 2.1"
        yield ModelProblem(("message", "allow_lossy"), message, hint, (("source", "media_type"),))


def _selected_registrations(publication: SdmxPublication) -> Findings:
    source = publication.source
    selects = [text.partition("=")[0].strip().lower() for text in source.select]
    named = ["registration" in _KINDS.split(kinds) for kinds in selects]
    if source.registrations and selects and "*" not in selects and not any(named):
        message = "`registrations: true`: no selector selects data registrations"
        hint = 'add a selector such as "Registration=*:*(*)", or leave `registrations` out'
        yield ModelProblem(("source", "registrations"), message, hint, (("source", "select"),))
    if not source.registrations and any(named):
        message = "a selector selects data registrations, which are not read"
        hint = "write `registrations: true`, or take Registration out of the selector"
        yield ModelProblem(("source", "select"), message, hint)


def _no_holes(publication: SdmxPublication) -> Findings:
    if publication.publish.on_failure == "dead-letter":
        message = "`on_failure: dead-letter` would leave holes in a registry's transactions"
        yield ModelProblem(("publish", "on_failure"), message, "use `on_failure: stop`", _KIND)


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
"""The keys that have an effect for Contexture's own events, by section; all others have none."""


def _without_effect(publication: OperationsPublication) -> Findings:
    """Yields a problem for everything that has no effect or is impossible for `kind: operations`."""
    for name in type(publication).model_fields:
        section = getattr(publication, name)
        if isinstance(section, PublicationModel):
            yield from _foreign_keys(name, section)
    if not publication.topics.topics:
        message = "no topic is set for the events"
        yield ModelProblem(("topics",), message, "add `topics: [NAME]` to the section `topics`", _KIND)
    if publication.publish.shards != 1:
        message = f"`shards: {publication.publish.shards}` has no effect for `kind: operations`: events have one order"
        yield ModelProblem(("publish", "shards"), message, "leave it out", _KIND)


def _foreign_keys(name: str, section: PublicationModel) -> Findings:
    for key in section.model_fields_set:
        # A publication that was written out has every default in it.
        default = type(section).model_fields[key].default
        if key not in FOR_OPERATIONS.get(name, ()) and getattr(section, key) != default:
            yield ModelProblem((name, key), f"`{key}` has no effect for `kind: operations`", "leave it out", _KIND)


ENTITY_CHECKS: tuple[Check, ...] = (
    _service,
    _geography,
    _lists_and_patterns,
    _required_attributes,
    _entity_limits,
    _fixed_topics,
    _names_without_use,
    _default_tenant,
    _name_schemes,
    _name_files,
    _secret_configuration,
    _topic_configuration,
    *LINKED_DATA_CHECKS,
    *RECORDS_OF_ENTITIES,
    *DELIVERY_OF_ENTITIES,
    *QUALITY_OF_ENTITIES,
)
STRUCTURE_CHECKS: tuple[Check, ...] = (
    _entity_limits,
    _topics_of_structures,
    _secret_configuration,
    _topic_configuration,
    *RECORDS_OF_STRUCTURES,
    *DELIVERY_OF_STRUCTURES,
    _one_sender,
    _conversion,
    _selected_registrations,
    _no_holes,
    *QUALITY_OF_STRUCTURES,
)
OPERATIONS_CHECKS: tuple[Check, ...] = (_without_effect, _secret_configuration, _topic_configuration)
