"""Rights of users on an embedded Kafka with access control."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from contexture_sandbox.kafka import EmbeddedKafka


def allow(kafka: EmbeddedKafka, user: str, kind: str, name: str, *operations: str) -> None:
    """Lets a user (`User:…`) do operations on a resource; a name that ends in `*` is a prefix, `*` everything."""
    pattern = ResourcePatternType.LITERAL if name == "*" or name[-1:] != "*" else ResourcePatternType.PREFIXED
    bindings = [
        AclBinding(
            ResourceType[kind],
            name if name == "*" else name.removesuffix("*"),
            pattern,
            user,
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    client = administrator(kafka)
    for done in client.create_acls(bindings, request_timeout=60).values():
        done.result(60)
    for each in bindings:
        await_rights(client, AclBindingFilter(*_fields(each)), 1)


def take(kafka: EmbeddedKafka, user: str, topic: str, operation: str) -> None:
    """Takes from a user the right to do something with a topic."""
    found = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        user,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    client = administrator(kafka)
    for done in client.delete_acls([found], request_timeout=60).values():
        assert len(done.result(60)) == 1
    await_rights(client, found, 0)


def await_rights(client: AdminClient, wanted: AclBindingFilter, count: int) -> None:
    """Waits until brokers know so many rights of the kind: they hear of a change after the answer."""
    until = time.monotonic() + 60
    while len(client.describe_acls(wanted, request_timeout=60).result(60)) != count:
        assert time.monotonic() < until, f"brokers do not know {count} of {wanted}"
        time.sleep(0.05)


def allow_everything(kafka: EmbeddedKafka, user: str) -> None:
    for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID"):
        allow(kafka, user, kind, "*", "ALL")
    allow(kafka, user, "BROKER", "kafka-cluster", "ALL")


def make_topics(kafka: EmbeddedKafka, *names: str, **config: str) -> None:
    """Makes topics; configuration with `_` for `.`."""
    client, settings = administrator(kafka), {name.replace("_", "."): value for name, value in config.items()}
    topics = [NewTopic(name, 1, 1, config=settings) for name in names]
    for done in client.create_topics(topics, request_timeout=60).values():
        done.result(60)


def _fields(binding: AclBinding) -> tuple[Any, ...]:
    resource = (binding.restype, binding.name, binding.resource_pattern_type)
    return (*resource, binding.principal, binding.host, binding.operation, binding.permission_type)


def administrator(kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.internal_servers})
