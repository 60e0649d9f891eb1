"""The listeners of an embedded Kafka: ports, security, and what a client needs to use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from contexture.errors import ConfigurationError
from contexture.sandbox.ports import LOOPBACK

Protocol = Literal["PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"]


@dataclass(frozen=True, slots=True)
class Security:
    """How clients reach an embedded Kafka.

    Attributes:
        protocol: Kafka's name of it; the SASL ones use SCRAM-SHA-512.
        users: passwords by user name, for the SASL protocols.
        client_certificates: whether TLS clients must show one (`client.pem` of the cluster's certificates).
    """

    protocol: Protocol = "PLAINTEXT"
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_certificates: bool = False

    def __post_init__(self) -> None:
        if self.sasl and not self.users:
            raise ConfigurationError(f"{self.protocol} without a user", next_step="give `users` at least one entry")

    @property
    def sasl(self) -> bool:
        """Whether clients log in."""
        return self.protocol.startswith("SASL")

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol.endswith("SSL")

    def broker_properties(self, keystore: Path) -> dict[str, str]:
        """The broker's settings for its client listener; `keystore` is the PEM file with its key and certificate."""
        properties = {}
        if self.sasl:
            properties["listener.name.client.sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
            properties["listener.name.client.scram-sha-512.sasl.jaas.config"] = (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
        if self.tls:
            properties["listener.name.client.ssl.keystore.type"] = "PEM"
            properties["listener.name.client.ssl.keystore.location"] = str(keystore)
            properties["listener.name.client.ssl.truststore.type"] = "PEM"
            properties["listener.name.client.ssl.truststore.location"] = str(keystore.with_name("ca.pem"))
            properties["listener.name.client.ssl.client.auth"] = "required" if self.client_certificates else "none"
        return properties

    def client_settings(self, certificates: Path, user: str | None = None) -> dict[str, str]:
        """What librdkafka needs beside `bootstrap.servers`; `user` is the first one unless named."""
        settings: dict[str, str] = {"security.protocol": self.protocol}
        if self.sasl:
            name = user or next(iter(self.users))
            settings |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": name,
                "sasl.password": self.users[name],
            }
        if self.tls:
            settings["ssl.ca.location"] = str(certificates / "ca.pem")
        if self.client_certificates:
            settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(certificates / "client.pem")
        return settings


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one broker: for clients, for brokers among themselves, for the controllers' quorum."""

    client: int
    internal: int
    controller: int


def listener_properties(ports: Ports, protocol: Protocol) -> dict[str, str]:
    """The listeners of one broker.

    Brokers talk among themselves in plain text on a listener of their own, so that the security of the clients' one
    can be anything without users and certificates for the brokers.
    """
    addresses = {"CLIENT": ports.client, "INTERNAL": ports.internal}
    advertised = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in addresses.items())
    return {
        "listeners": f"{advertised},CONTROLLER://{LOOPBACK}:{ports.controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": f"CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
    }
