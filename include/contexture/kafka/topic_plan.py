"""What existing topics would have to change to be as their publications say, and the changes a person asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from contexture.errors import ConfigurationError
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.topics import UNKNOWN_SETTING, TopicDrift, TopicSpec, by_name, drift_of

_WAIT_SECONDS = 60.0


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
_FEWER = "Kafka takes no partition away: make a new topic, or put the number it has into topics.partitions"
_NO_SETTING = "the brokers have no such setting: correct topics.config"
_REPLICAS = "move replicas with Kafka's kafka-reassign-partitions, or put their number into topics.replication_factor"


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
    """How one difference can be removed.

    Args:
        drift: the difference.
        keyed: records of the topic have keys, which tell their partitions.
    """
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
    wait_seconds: float = _WAIT_SECONDS,
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
        KafkaConfigurationError: this user may not look.
        BrokersAwayError: nobody answers.
    """
    wanted = by_name(specs)
    admin = TopicAdmin(settings, Patience(wait_seconds, progress))
    listed = admin.listed() if wanted else {}
    existing = [spec for name, spec in wanted.items() if name in listed]
    found = drift_of(existing, listed, admin.configs([spec.name for spec in existing]))
    changes = tuple(change_for(drift, keyed=drift.topic in keyed) for drift in found)
    missing = tuple(sorted(name for name in wanted if name not in listed))
    return TopicsPlan(missing, len(existing) - len({drift.topic for drift in found}), changes)


def apply_plan(
    settings: ClientSettings, plan: TopicsPlan, *, grow_keyed: bool = False, wait_seconds: float = _WAIT_SECONDS
) -> tuple[TopicChange, ...]:
    """Makes the changes that can be made; gives those that were made. What is to be done by hand stays.

    Args:
        settings: the connection.
        plan: what was found.
        grow_keyed: whether keys may go to other partitions.
        wait_seconds: how long brokers are waited for.

    Raises:
        ConfigurationError: keys would move and may not; nothing is changed then.
        KafkaConfigurationError: the brokers refuse a change.
        BrokersAwayError: nobody answers.
    """
    if plan.moves_keys and not grow_keyed:
        raise ConfigurationError(
            f"{len(plan.moves_keys)} topics with keys would get more partitions, the first is {plan.moves_keys[0]}: "
            "most keys would go to other partitions, and their earlier records would stay where they are",
            next_step="confirm with --grow-keyed, or put the number they have into topics.partitions; a new topic "
            "keeps the records of a key together",
        )
    admin = TopicAdmin(settings, Patience(wait_seconds))
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
