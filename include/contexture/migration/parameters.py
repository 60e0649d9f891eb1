"""The values of a Kafka sink's parameters, by the rules and with the defaults of Cygnus."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from contexture.migration.agents import Component

T = TypeVar("T")

DATA_MODELS = ("dm-by-service", "dm-by-service-path", "dm-by-entity", "dm-by-attribute")
DEFAULT_BROKERS = "localhost:9092"

# The name of data models before release 1.0.
_BY_TOPIC_TYPE = {
    "topic-by-service": "dm-by-service",
    "topic-by-service-path": "dm-by-service-path",
    "topic-by-destination": "dm-by-entity",
}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_BY_PLAIN_NAME = {model.replace("-", ""): model for model in DATA_MODELS}


@dataclass(frozen=True, slots=True)
class SinkParameters:
    """What a Kafka sink was told; the names are Cygnus' own. `batch_timeout` is in seconds, the intervals in ms."""

    data_model: str
    enable_grouping: bool
    enable_name_mappings: bool
    enable_lowercase: bool
    broker_list: str
    partitions: int
    replication_factor: int
    batch_size: int
    batch_timeout: int
    batch_ttl: int
    batch_retry_intervals: tuple[int, ...]

    @property
    def own_topic_for_each_key(self) -> bool:
        """Whether all records of a topic are of one entity, or of one attribute."""
        plain = not (self.enable_grouping or self.enable_name_mappings or self.enable_lowercase)
        return plain and self.data_model in {"dm-by-entity", "dm-by-attribute"}


def read_parameters(sink: Component) -> tuple[SinkParameters, dict[str, str]]:
    """The parameters of a sink, and what is wrong with those that can't be used, by the file's key.

    A parameter that can't be used stands at its default.
    """
    reader = _Reader(sink)
    parameters = SinkParameters(
        data_model=reader.read("data_model", reader.read("topic_type", "dm-by-entity", _topic_type), _data_model),
        enable_grouping=reader.read("enable_grouping", False, _flag),
        enable_name_mappings=reader.read("enable_name_mappings", False, _flag),
        enable_lowercase=reader.read("enable_lowercase", False, _flag),
        broker_list=reader.read("broker_list", DEFAULT_BROKERS, _brokers),
        partitions=reader.read("partitions", 1, _at_least(1)),
        replication_factor=reader.read("replication_factor", 1, _at_least(1)),
        batch_size=reader.read("batch_size", 1, _at_least(1)),
        batch_timeout=reader.read("batch_timeout", 30, _at_least(1)),
        batch_ttl=reader.read("batch_ttl", 10, _at_least(-1)),
        batch_retry_intervals=reader.read("batch_retry_intervals", (5000,), _intervals),
    )
    return parameters, reader.wrong


class _Reader:
    def __init__(self, sink: Component) -> None:
        self._sink = sink
        self.wrong: dict[str, str] = {}

    def read(self, name: str, default: T, convert: Callable[[str], T]) -> T:
        value = self._sink.value(name)
        if not value:
            return default
        try:
            return convert(value)
        except ValueError as error:
            key = f"{self._sink.agent}.sinks.{self._sink.name}.{name}"
            self.wrong[key] = f"{error}; the default {_written(default)} was written"
            return default


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _data_model(text: str) -> str:
    # Cygnus ignores hyphens and case.
    model = _BY_PLAIN_NAME.get(text.replace("-", "").lower())
    if model is None:
        raise ValueError(f"Cygnus' Kafka sink writes nothing with it: expected one of {', '.join(DATA_MODELS)}")
    return model


def _topic_type(text: str) -> str:
    if text not in _BY_TOPIC_TYPE:
        raise ValueError(f"expected one of {', '.join(_BY_TOPIC_TYPE)}")
    return _BY_TOPIC_TYPE[text]


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


def _at_least(lowest: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        # Python alone would read 1_000 too.
        if not _WHOLE_NUMBER.fullmatch(text) or int(text) < lowest:
            raise ValueError(f"expected a whole number of at least {lowest}")
        return int(text)

    return convert


def _intervals(text: str) -> tuple[int, ...]:
    return tuple(map(_at_least(1), (part.strip() for part in text.split(","))))


def _brokers(text: str) -> str:
    return ",".join(part.strip() for part in text.split(",") if part.strip())
