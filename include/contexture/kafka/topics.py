"""Topics are there before the first record: missing ones are made in bulk, existing ones are never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from contexture.errors import ConfigurationError
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import NewTopicOrder, TopicAdmin
from contexture.kafka.topic_listing import ListedTopic
from contexture.kafka.topic_retention import check_retention

MAX_BROKER_PARTITIONS = 15_000
"""Partitions that a broker holds at most. Each takes two memory maps, or four where its first records are older than
`segment.ms` (it then has two segments), and Linux allows a process 65,530 by default."""
UNKNOWN_SETTING = "unknown"
"""What is found of a setting that the brokers do not have."""
_POLICY = {"latest": "compact", "history": "delete"}
_WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as a publication wants it.

    Attributes:
        name: legal for Kafka.
        partitions: how many.
        replication_factor: -1 takes the brokers' default.
        config: further configuration, by Kafka's names.
        keep: `latest` is a compacted topic, `history` keeps every change as configured.
    """

    name: str
    partitions: int = 1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)
    keep: Literal["latest", "history"] = "history"

    def full_config(self) -> dict[str, str]:
        """The configuration with what `keep` means; the publication's own word wins."""
        return {"cleanup.policy": _POLICY[self.keep], **self.config}


@dataclass(frozen=True, slots=True)
class TopicDrift:
    """An existing topic that differs from what the publication says; it is left as it is."""

    topic: str
    setting: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found}, the publication says {self.wanted}"


@dataclass(frozen=True, slots=True)
class TopicsReport:
    """What was done and what was noticed.

    Attributes:
        created: names of new topics.
        existing: how many were there.
        drift: differences that a person may want to look at.
    """

    created: tuple[str, ...]
    existing: int
    drift: tuple[TopicDrift, ...]


def ensure_topics(
    settings: ClientSettings,
    specs: Iterable[TopicSpec],
    *,
    max_new_topics: int = 5_000,
    max_broker_partitions: int = MAX_BROKER_PARTITIONS,
    progress: Callable[[str], None] = lambda sentence: None,
    wait_seconds: float = _WAIT_SECONDS,
) -> TopicsReport:
    """Every topic exists and can be used when this returns.

    Args:
        settings: the connection.
        specs: what is wanted; a name may come several times when it is always the same.
        max_new_topics: more missing topics than this are a mistake in naming, and none is made.
        max_broker_partitions: new topics that would give a broker more partitions than this are not made.
        progress: gets a sentence now and then.
        wait_seconds: how long brokers are waited for.

    Raises:
        KafkaConfigurationError: too many new topics, too many partitions for the brokers, or they refuse a topic; or
            an existing topic would lose records that `keep` is to keep. No topic is made then.
        RetriableError: no broker answers, or new topics do not become usable.
    """
    wanted = by_name(specs)
    if not wanted:
        return TopicsReport((), 0, ())
    admin = TopicAdmin(settings, Patience(wait_seconds, progress))
    listed = admin.listed(next(iter(wanted)) if len(wanted) == 1 else None)
    missing = [spec for name, spec in wanted.items() if name not in listed]
    _check_count(missing, max_new_topics)
    existing = [spec for name, spec in wanted.items() if name in listed]
    configs = admin.configs([spec.name for spec in existing])
    check_retention(existing, configs)
    if missing:
        if len(wanted) > 1:
            check_room(admin.brokers(), listed, missing, max_broker_partitions)
        _make(admin, missing, progress)
    return TopicsReport(tuple(spec.name for spec in missing), len(existing), drift_of(existing, listed, configs))


def _make(admin: TopicAdmin, missing: list[TopicSpec], progress: Callable[[str], None]) -> None:
    progress(f"making {len(missing)} topics")
    admin.create([_order(spec) for spec in missing], lambda count: progress(f"made {count} of {len(missing)} topics"))
    admin.await_usable(
        {spec.name: spec.partitions for spec in missing},
        waiting=lambda left: progress(f"waiting until {left} new topics can be used"),
    )


def by_name(specs: Iterable[TopicSpec]) -> dict[str, TopicSpec]:
    """Topics by name.

    Raises:
        ConfigurationError: one is wanted in two ways.
    """
    wanted: dict[str, TopicSpec] = {}
    for spec in specs:
        if wanted.setdefault(spec.name, spec) != spec:
            raise ConfigurationError(
                f"topic {spec.name} is wanted in two ways",
                next_step="give both publications the same partitions, replication factor, keep and config",
                topic=spec.name,
            )
    return wanted


def _check_count(missing: list[TopicSpec], max_new_topics: int) -> None:
    if len(missing) > max_new_topics:
        raise KafkaConfigurationError(
            f"{len(missing)} new topics would be made, more than topics.max_new_topics ({max_new_topics}); "
            f"the first is {missing[0].name}",
            next_step="look at the names with `contexture check`; give topics.data_model one that makes fewer of them "
            "(dm-by-service-path, dm-by-service), or raise topics.max_new_topics if they are right",
        )


def check_room(brokers: int, listed: Mapping[str, ListedTopic], missing: Sequence[TopicSpec], limit: int) -> None:
    """Sees that brokers can hold what is new.

    Raises:
        KafkaConfigurationError: they can not; none is to be made.
    """
    held = sum(topic.partitions * max(1, topic.replication_factor) for topic in listed.values())
    new = sum(spec.partitions * max(1, spec.replication_factor) for spec in missing)
    each = -(-(held + new) // brokers)
    if each > limit:
        raise KafkaConfigurationError(
            f"{len(missing)} new topics with {new} partitions, copies counted, would give each of {brokers} brokers "
            f"about {each} partitions, more than topics.max_broker_partitions ({limit}); none is made",
            next_step="give topics.data_model one that makes fewer topics (dm-by-service-path), lower "
            "topics.partitions, add brokers, or raise both the brokers' limits (vm.max_map_count, open files) and "
            "topics.max_broker_partitions",
        )


def _order(spec: TopicSpec) -> NewTopicOrder:
    return NewTopicOrder(spec.name, spec.partitions, spec.replication_factor, spec.full_config())


def drift_of(
    existing: Sequence[TopicSpec], listed: Mapping[str, ListedTopic], configs: Mapping[str, Mapping[str, str]]
) -> tuple[TopicDrift, ...]:
    """How existing topics differ from what is wanted; what a publication does not say is no difference."""
    found: list[TopicDrift] = []
    for spec in existing:
        topic = listed[spec.name]
        pairs = {"partitions": (str(spec.partitions), str(topic.partitions))}
        if spec.replication_factor > 0:
            pairs["replication_factor"] = (str(spec.replication_factor), str(topic.replication_factor))
        for name, value in spec.full_config().items():
            pairs[name] = (value, configs.get(spec.name, {}).get(name, UNKNOWN_SETTING))
        found += [TopicDrift(spec.name, name, want, have) for name, (want, have) in pairs.items() if want != have]
    return tuple(found)
