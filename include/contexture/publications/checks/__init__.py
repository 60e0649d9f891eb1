"""Checks of combinations: what the keys of a publication exclude together, and what this version does not support.

Making something work deletes its row. A value in this table is refused, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contexture.publications.checks.ngsi import LINKED_DATA_CHECKS
from contexture.publications.checks.operations import of_operations, of_others
from contexture.publications.checks.quality import QUALITY_CHECKS
from contexture.publications.checks.records import RECORD_CHECKS, Findings
from contexture.publications.checks.sdmx import STRUCTURE_CHECKS
from contexture.publications.problems import Location, ModelProblem, looks_secret
from contexture.publications.source import BROKER_ONLY, REGISTRY_ONLY

if TYPE_CHECKING:
    from contexture.publications.publication import Publication

_REGISTRIES, _BROKERS = frozenset(("fmr",)), frozenset(("orion", "orion-ld", "scorpio", "stellio"))
_LEGACY_RELEASE = re.compile(r"0\.|1\.0*[0-2](\.|$)")


def check_combinations(publication: Publication) -> Findings:
    """A finding for every combination of values that could never do what each of them says."""
    checks = _OF_OPERATIONS if publication.source.kind == "operations" else _CHECKS
    for check in checks:
        yield from check(publication)


def _source_kind(publication: Publication) -> Findings:
    source = publication.source
    kind, foreign = ("sdmx", REGISTRY_ONLY) if source.kind == "ngsi" else ("ngsi", BROKER_ONLY)
    for key in foreign["source"]:
        if key in source.model_fields_set and getattr(source, key) != type(source).model_fields[key].default:
            yield ModelProblem(("source", key), f"`{key}` needs `kind: {kind}`", "leave it out", (("source", "kind"),))
    if source.flavour in (_REGISTRIES if source.kind == "ngsi" else _BROKERS):
        message = f"`flavour: {source.flavour}` needs `kind: {kind}`"
        yield ModelProblem(
            ("source", "flavour"), message, "write `flavour: auto`, or leave it out", (("source", "kind"),)
        )
    if source.kind == "sdmx" and source.mode == "notifications":
        message = "`mode: notifications` needs `kind: ngsi`: a registry notifies nobody"
        yield ModelProblem(("source", "mode"), message, "use `mode: changes`", (("source", "kind"),))
    if source.kind == "ngsi" and "service" not in source.model_fields_set:
        yield ModelProblem(
            ("source", "service"),
            "`service` is missing: a context broker has no list of them",
            'write the Fiware-Service, or "" for the broker\'s default tenant',
            (("source", "kind"),),
        )


def _geography(publication: Publication) -> Findings:
    source = publication.source
    parts = {"georel": source.georel, "geometry": source.geometry, "coords": source.coords}
    missing = [name for name, value in parts.items() if value is None]
    if missing and len(missing) < len(parts):
        present = next(name for name in parts if name not in missing)
        message = f"a geographical query needs georel, geometry and coords; missing: {', '.join(missing)}"
        involved = tuple(("source", name) for name in parts)
        yield ModelProblem(("source", present), message, "write all three, or none", involved)


def _lists_and_patterns(publication: Publication) -> Findings:
    source = publication.source
    for listed, pattern in (("types", "type_pattern"), ("ids", "id_pattern")):
        if getattr(source, listed) and getattr(source, pattern) is not None:
            message = f"`{pattern}` and `{listed}` exclude each other: brokers take one of them"
            yield ModelProblem(("source", pattern), message, "leave one out", (("source", listed),))


def _required_attributes(publication: Publication) -> Findings:
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


def _fixed_topics(publication: Publication) -> Findings:
    topics = publication.topics
    involved = (("topics", "naming"), ("topics", "topics"), ("topics", "routes"))
    if topics.naming == "fixed" and not topics.topics and not topics.routes:
        yield _without_names(publication, involved)
    if topics.naming != "fixed" and topics.topics:
        message = f"`topics` needs `naming: fixed`; `naming: {topics.naming}` makes its own names"
        yield ModelProblem(("topics", "topics"), message, "write `naming: fixed`, or leave the names out", involved)


def _without_names(publication: Publication, involved: tuple[Location, ...]) -> ModelProblem:
    if publication.source.kind == "sdmx":
        message, hint = "nothing says where structures go", "add `topics: [NAME]` or `routes` to the section `topics`"
        return ModelProblem(("topics",), message, hint, (*involved, ("source", "kind")))
    return ModelProblem(
        ("topics", "naming"), "`naming: fixed` needs the names", "add `topics: [NAME]` to this section", involved
    )


def _cygnus_names(publication: Publication) -> Findings:
    topics, source = publication.topics, publication.source
    names_of_context = topics.naming in {"cygnus", "cygnus-legacy", "injective"}
    if names_of_context and source.kind == "sdmx":
        message = f"`naming: {topics.naming}` makes names of entities; a registry has none"
        yield ModelProblem(
            ("topics", "naming"), message, "leave it out, or write `naming: fixed`", (("source", "kind"),)
        )
    nameless = not source.service and source.kind == "ngsi" and not topics.enable_name_mappings
    if names_of_context and topics.data_model == "dm-by-service" and nameless:
        message = "`data_model: dm-by-service` would name the topic of the default tenant with nothing"
        involved = (("source", "service"), ("topics", "naming"))
        hint = "choose another data_model, `naming: fixed`, or name mappings that give the service a name"
        yield ModelProblem(("topics", "data_model"), message, hint, involved)


def _name_schemes(publication: Publication) -> Findings:
    topics = publication.topics
    if topics.naming in {"injective", "fixed"} and topics.cygnus_version is not None:
        message = f"`cygnus_version` has no effect on `naming: {topics.naming}`"
        yield ModelProblem(("topics", "cygnus_version"), message, "leave it out", (("topics", "naming"),))
    elif topics.naming == "cygnus-legacy" and not _LEGACY_RELEASE.match(topics.cygnus_version or "1.2"):
        message = f"Cygnus {topics.cygnus_version} didn't name topics in the legacy way of 1.2 and before"
        yield ModelProblem(("topics", "cygnus_version"), message, "write `naming: cygnus`", (("topics", "naming"),))
    if topics.naming in {"injective", "fixed"} and topics.collision != "warn":
        message = f"`collision: {topics.collision}` has no effect on `naming: {topics.naming}`"
        yield ModelProblem(("topics", "collision"), message, "leave it out", (("topics", "naming"),))
    if topics.naming == "injective" and topics.enable_lowercase:
        message = "`enable_lowercase: true` would let several identities share a topic of `naming: injective`"
        yield ModelProblem(("topics", "enable_lowercase"), message, "leave it out", (("topics", "naming"),))


def _name_files(publication: Publication) -> Findings:
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
    if in_sync.isdecimal() and int(in_sync) > topics.replication_factor:
        message = f"min.insync.replicas {in_sync} is above replication_factor {topics.replication_factor}"
        involved = (("topics", "replication_factor"), ("topics", "config"))
        yield ModelProblem(
            ("topics", "config", "min.insync.replicas"), f"{message}: no record could be sent", "lower it", involved
        )


_CHECKS: tuple[Callable[[Publication], Findings], ...] = (
    _source_kind,
    _geography,
    _lists_and_patterns,
    _required_attributes,
    _entity_limits,
    _fixed_topics,
    _cygnus_names,
    _name_schemes,
    _name_files,
    _secret_configuration,
    _topic_configuration,
    *LINKED_DATA_CHECKS,
    *RECORD_CHECKS,
    *STRUCTURE_CHECKS,
    *QUALITY_CHECKS,
    of_others,
)

_OF_OPERATIONS: tuple[Callable[[Publication], Findings], ...] = (
    of_operations,
    _secret_configuration,
    _topic_configuration,
)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key with values whose behaviour is still missing.

    Attributes:
        values: those that don't work yet; none: whatever isn't empty.
        today: what to write instead.
        member: where given, the values are those of this key in each item of a list.
    """

    section: str
    key: str
    values: tuple[object, ...]
    today: str
    member: str = ""

    def applies_to(self, value: object) -> bool:
        """Whether the value is one of those that don't work yet."""
        return value in self.values if self.values else bool(value)


UNSUPPORTED = (
    Unsupported(
        "source", "registrations", (True,), "leave it out: no document says by which key a registry tells them"
    ),
)


def not_yet_supported(publication: Publication) -> Iterator[ModelProblem]:
    """A finding for every value of the publication that this version can't honour."""
    for row in UNSUPPORTED:
        for location, value in _values(publication, row):
            if row.applies_to(value):
                what = f"`{location[-1]}: {_shown(value)}`"
                yield ModelProblem(location, f"not yet supported: {what}", row.today)


def _values(publication: Publication, row: Unsupported) -> Iterator[tuple[Location, object]]:
    value = getattr(getattr(publication, row.section), row.key)
    if not row.member:
        yield (row.section, row.key), value
        return
    for number, item in enumerate(value):
        yield (row.section, row.key, number, row.member), getattr(item, row.member)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else "[...]"
