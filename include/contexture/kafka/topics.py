"""Topics exist before the first record: a plan of what to create, grow and configure, and its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from contexture.errors import ConfigurationError
from contexture.kafka.admin import ListedTopic, NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.settings import ClientSettings

_KEY = "cleanup.policy"

_LIMITS = ("retention.ms", "retention.bytes")
_UNLIMITED = "-1"
_SHOWN = 5


def find_loss(spec: TopicSpec, config: Mapping[str, str]) -> str | None:
    """Returns why an existing topic would lose records that its publication wants kept; None where it keeps them.

    Args:
        spec: the topic as the publication wants it.
        config: the topic's configuration in force, by Kafka's names; settings that are absent count as harmless.
    """
    policies = {policy.strip() for policy in config.get(_KEY, "").split(",")}
    if spec.keep == "history":
        if "compact" not in policies:
            return None
        return f"{_KEY} is {config[_KEY]}: compaction removes all but the newest record of each key"
    limits = [f"{name} is {config[name]}" for name in _LIMITS if config.get(name, _UNLIMITED) != _UNLIMITED]
    if "delete" not in policies or not limits:
        return None
    return f"{_KEY} is {config[_KEY]} and {' and '.join(limits)}: Kafka removes what has not changed for long"


def check_retention(specs: Iterable[TopicSpec], configs: Mapping[str, Mapping[str, str]]) -> None:
    """Checks that existing topics keep what is sent to them.

    Raises:
        KafkaConfigurationError: one or more would lose records.
    """
    losses = [(spec, why) for spec in specs if (why := find_loss(spec, configs.get(spec.name, {})))]
    if not losses:
        return
    first, why = losses[0]
    wanted = first.full_config()[_KEY]
    more = f"; also {', '.join(spec.name for spec, _ in losses[1:_SHOWN])}" if losses[1:] else ""
    rest = f" and {len(losses) - _SHOWN} more" if len(losses) > _SHOWN else ""
    other = "latest" if first.keep == "history" else "history"
    raise KafkaConfigurationError(
        f"topic {first.name} would lose records that topics.keep: {first.keep} must keep: {why}{more}{rest}",
        next_step="run `contexture topics apply` (or kafka-configs --alter --entity-type topics --entity-name "
        f"{first.name} --add-config {_KEY}={wanted}), then clear this task; or write keep: {other} if the "
        "topic is intended for that",
        topic=first.name,
    )


MAX_BROKER_PARTITIONS = 15_000
"""Partitions that a broker holds at most. Each takes two memory maps, or four where its first records are older than
`segment.ms` (it then has two segments), and Linux allows a process 65,530 by default."""
UNKNOWN_SETTING = "unknown"
"""What is found of a setting that the brokers do not have."""
_POLICY = {"latest": "compact", "history": "delete"}
_WAIT_SECONDS = 300.0


DEFAULT_COPIES = -1
"""As a replication factor: what the brokers have as their default."""
_DEFAULT_OPTION = "default.replication.factor"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as a publication wants it.

    Attributes:
        name: legal for Kafka.
        partitions: how many.
        replication_factor: DEFAULT_COPIES takes the brokers' default.
        config: further configuration, by Kafka's names.
        keep: `latest` is a compacted topic, `history` keeps every change as configured.
    """

    name: str
    partitions: int = 1
    replication_factor: int = DEFAULT_COPIES
    config: Mapping[str, str] = field(default_factory=dict)
    keep: Literal["latest", "history"] = "history"

    def full_config(self) -> dict[str, str]:
        """Returns the configuration with what `keep` means; the publication's own word wins."""
        return {"cleanup.policy": _POLICY[self.keep], **self.config}


@dataclass(frozen=True, slots=True)
class TopicDrift:
    """An existing topic that differs from what the publication says; it is left as it is."""

    topic: str
    setting: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found}, the publication specifies {self.wanted}"


@dataclass(frozen=True, slots=True)
class TopicsReport:
    """What was done and what was noticed.

    Attributes:
        created: names of new topics.
        existing: how many were there.
        drift: differences that a person may want to check.
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
    """Makes topics, so that every topic exists and can be used when this returns.

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
    admin = TopicAdmin(settings, BrokerWait(wait_seconds, progress))
    listed = admin.listed(next(iter(wanted)) if len(wanted) == 1 else None)
    missing = [spec for name, spec in wanted.items() if name not in listed]
    _check_count(missing, max_new_topics)
    existing = [spec for name, spec in wanted.items() if name in listed]
    configs = admin.configs([spec.name for spec in existing])
    check_retention(existing, configs)
    if missing:
        if len(wanted) > 1:
            check_room(admin.brokers(), listed, missing, max_broker_partitions, _default_copies(admin, missing))
        _make(admin, missing, progress)
    return TopicsReport(tuple(spec.name for spec in missing), len(existing), drift_of(existing, listed, configs))


def _default_copies(admin: TopicAdmin, missing: list[TopicSpec]) -> int:
    """Returns the replicas of topics that name no number; 1 if this user may not see the brokers' configuration."""
    if all(spec.replication_factor > 0 for spec in missing):
        return 1
    return admin.lowest_of_brokers(_DEFAULT_OPTION) or 1


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
                f"topic {spec.name} is configured in two ways",
                next_step="give both publications the same partitions, replication factor, keep and config",
                topic=spec.name,
            )
    return wanted


def _check_count(missing: list[TopicSpec], max_new_topics: int) -> None:
    if len(missing) > max_new_topics:
        raise KafkaConfigurationError(
            f"{len(missing)} new topics would be made, more than topics.max_new_topics ({max_new_topics}); "
            f"the first is {missing[0].name}",
            next_step="check the names with `contexture check`; set topics.data_model to one that makes fewer of them "
            "(dm-by-service-path, dm-by-service), or raise topics.max_new_topics if they are right",
        )


def check_room(
    brokers: int,
    listed: Mapping[str, ListedTopic],
    missing: Sequence[TopicSpec],
    limit: int,
    default_copies: int = 1,
) -> None:
    """Checks that brokers can hold the new topics.

    Args:
        brokers: their number.
        listed: the topics that exist.
        missing: the new topics.
        limit: the most partitions that one broker may hold.
        default_copies: the replicas of topics that leave their number to the brokers.

    Raises:
        KafkaConfigurationError: they can not; none is to be made.
    """
    held = sum(topic.partitions * max(1, topic.replication_factor) for topic in listed.values())
    copies = [default_copies if spec.replication_factor < 0 else spec.replication_factor for spec in missing]
    new = sum(spec.partitions * each for spec, each in zip(missing, copies, strict=True))
    each = -(-(held + new) // brokers)
    if each > limit:
        raise KafkaConfigurationError(
            f"{len(missing)} new topics with {new} partitions, replicas included, would give each of {brokers} "
            f"brokers about {each} partitions, more than topics.max_broker_partitions ({limit}); none is made",
            next_step="set topics.data_model to one that makes fewer topics (dm-by-service-path), lower "
            "topics.partitions, add brokers, or raise both the brokers' limits (vm.max_map_count, open "
            "files) and topics.max_broker_partitions",
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


_PLAN_WAIT_SECONDS = 60.0


class Way(Enum):
    """How a difference can be removed."""

    GROW = "grow"
    GROW_KEYED = "grow, keys move"
    CONFIGURE = "configure"
    BY_HAND = "by hand"


_ADVICE: Mapping[Way, str] = {
    Way.GROW: "contexture topics apply",
    Way.GROW_KEYED: "contexture topics apply --grow-keyed: records of most keys go to other partitions from then on, "
    "and earlier ones stay where they are, on compacted topics too; a new topic keeps keys together",
    Way.CONFIGURE: "contexture topics apply",
}
_FEWER = "Kafka cannot remove partitions: create a new topic, or set topics.partitions to the present number"
_NO_SETTING = "the brokers have no such setting: correct topics.config"
_REPLICAS = "move replicas with Kafka's kafka-reassign-partitions, or set topics.replication_factor to their number"


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One difference, how it can be removed, and what to do for it."""

    drift: TopicDrift
    way: Way
    advice: str


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """What was found.

    Attributes:
        missing: topics that aren't there; the next run that sends to them makes them.
        alike: how many are as they should be.
        changes: what differs, by topic.
    """

    missing: tuple[str, ...]
    alike: int
    changes: tuple[TopicChange, ...]

    @property
    def moves_keys(self) -> tuple[str, ...]:
        """Topics whose keys would go to other partitions."""
        return tuple(change.drift.topic for change in self.changes if change.way is Way.GROW_KEYED)


def change_for(drift: TopicDrift, *, keyed: bool) -> TopicChange:
    """Returns how one difference can be removed; records of `keyed` topics show their partitions by their keys."""
    if drift.setting == "replication_factor":
        return TopicChange(drift, Way.BY_HAND, _REPLICAS)
    if drift.found == UNKNOWN_SETTING:
        return TopicChange(drift, Way.BY_HAND, _NO_SETTING)
    if drift.setting != "partitions":
        return TopicChange(drift, Way.CONFIGURE, _ADVICE[Way.CONFIGURE])
    if int(drift.wanted) < int(drift.found):
        return TopicChange(drift, Way.BY_HAND, _FEWER)
    way = Way.GROW_KEYED if keyed else Way.GROW
    return TopicChange(drift, way, _ADVICE[way])


def plan_topics(
    settings: ClientSettings,
    specs: Iterable[TopicSpec],
    keyed: frozenset[str],
    *,
    wait_seconds: float = _PLAN_WAIT_SECONDS,
    progress: Callable[[str], None] = lambda sentence: None,
) -> TopicsPlan:
    """Compares topics with what publications say; changes nothing.

    Args:
        settings: the connection.
        specs: the topics; a name may come several times when it is always the same.
        keyed: those whose records have keys.
        wait_seconds: how long brokers are waited for.
        progress: gets a sentence now and then while they are.

    Raises:
        ConfigurationError: two publications want one topic in two ways.
        KafkaConfigurationError: this user may not read topics or their configuration.
        BrokersAwayError: no one answers.
    """
    wanted = by_name(specs)
    admin = TopicAdmin(settings, BrokerWait(wait_seconds, progress))
    listed = admin.listed() if wanted else {}
    existing = [spec for name, spec in wanted.items() if name in listed]
    found = drift_of(existing, listed, admin.configs([spec.name for spec in existing]))
    changes = tuple(change_for(drift, keyed=drift.topic in keyed) for drift in found)
    missing = tuple(sorted(name for name in wanted if name not in listed))
    return TopicsPlan(missing, len(existing) - len({drift.topic for drift in found}), changes)


def apply_plan(
    settings: ClientSettings, plan: TopicsPlan, *, grow_keyed: bool = False, wait_seconds: float = _PLAN_WAIT_SECONDS
) -> tuple[TopicChange, ...]:
    """Makes the changes that can be made and returns them. Changes by hand are left.

    Args:
        settings: the connection.
        plan: what was found.
        grow_keyed: whether keys may go to other partitions.
        wait_seconds: how long brokers are waited for.

    Raises:
        ConfigurationError: keys would move and may not; nothing is changed then.
        KafkaConfigurationError: the brokers refuse a change.
        BrokersAwayError: no one answers.
    """
    if plan.moves_keys and not grow_keyed:
        raise ConfigurationError(
            f"{len(plan.moves_keys)} topics with keys would get more partitions, the first is {plan.moves_keys[0]}: "
            "most keys would go to other partitions, and their earlier records would stay where they are",
            next_step="confirm with --grow-keyed, or set topics.partitions to the present number; a new topic keeps "
            "the records of a key together",
        )
    admin = TopicAdmin(settings, BrokerWait(wait_seconds))
    made = tuple(change for change in plan.changes if change.way is not Way.BY_HAND)
    grown = {change.drift.topic: int(change.drift.wanted) for change in made if change.way is not Way.CONFIGURE}
    for topic, partitions in grown.items():
        admin.grow(topic, partitions)
    configured: dict[str, dict[str, str]] = {}
    for change in made:
        if change.way is Way.CONFIGURE:
            configured.setdefault(change.drift.topic, {})[change.drift.setting] = change.drift.wanted
    admin.configure(configured)
    if grown:
        admin.await_usable(grown, wait_seconds)
    return made
