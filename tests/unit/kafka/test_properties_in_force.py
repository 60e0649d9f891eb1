"""What is listed as a property's value is what a client has: clients are made, and asked for their configuration."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import cimpl

from contexture.kafka import ClientSettings
from contexture.kafka.properties import client_properties

PRODUCER, CONSUMER = 0, 1
LONGEST = 4096
# What the client calls otherwise.
OTHERWISE = {"all": "-1", "earliest": "smallest"}
OF_READERS = {"receive.message.max.bytes"}
"""Of all kinds of clients, and set for readers alone."""
FUNCTION = "*Type: see dedicated API*"
# Of ours, of each sender, or set below so that nothing is written to the screen.
NOT_ASKED = {"contexture.profile", "transactional.id", "log_level", "builtin.features"}


def library() -> ctypes.CDLL:
    found = ctypes.CDLL(cimpl.__file__)
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_conf"):
        getattr(found, name).restype = ctypes.c_void_p
    found.rd_kafka_conf_set.argtypes = [ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t]
    found.rd_kafka_new.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    found.rd_kafka_conf.argtypes = found.rd_kafka_destroy.argtypes = [ctypes.c_void_p]
    found.rd_kafka_conf_get.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    return found


class Client:
    """A client that was made, with what it made of its options."""

    def __init__(self, found: ctypes.CDLL, handle: int) -> None:
        self._library, self._configuration = found, found.rd_kafka_conf(handle)

    def value(self, name: str) -> str:
        text, size = ctypes.create_string_buffer(LONGEST), ctypes.c_size_t(LONGEST)
        known = self._library.rd_kafka_conf_get(self._configuration, name.encode(), text, ctypes.byref(size)) == 0
        return text.value.decode() if known else ""


@contextmanager
def client(kind: int, options: Mapping[str, object]) -> Iterator[Client]:
    found, message = library(), ctypes.create_string_buffer(LONGEST)
    configuration = found.rd_kafka_conf_new()
    for name, value in {**options, "log_level": 0}.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        assert found.rd_kafka_conf_set(configuration, name.encode(), text.encode(), message, LONGEST) == 0, (
            message.value
        )
    handle = found.rd_kafka_new(kind, configuration, message, LONGEST)
    assert handle, message.value
    try:
        yield Client(found, handle)
    finally:
        found.rd_kafka_destroy(handle)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"contexture.profile": "latency"},
        {"contexture.profile": "throughput"},
        {
            "max.request.size": 40_000_000,
            "transaction.timeout.ms": 60_000,
            "linger.ms": "7.5",
            "topic.metadata.refresh.interval.ms": 1000,
            "retry.backoff.ms": 250,
            "compression.codec": "zstd",
            "client.id": "me",
        },
    ],
)
def test_the_values_in_force_are_those_that_are_listed(extra):
    settings = ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:9", **extra})
    listed = [
        each
        for each in client_properties(settings)
        if each.name not in NOT_ASKED and not each.description.endswith(FUNCTION)
    ]
    with client(PRODUCER, settings.producer("tx.p.0")) as sender, client(CONSUMER, settings.consumer()) as reader:
        found = {
            each.name: (reader if each.applies_to == "consumer" or each.name in OF_READERS else sender).value(each.name)
            for each in listed
        }
    expected = {each.name: OTHERWISE.get(each.value, each.value) for each in listed}
    assert len(found) > 140
    assert found == expected
