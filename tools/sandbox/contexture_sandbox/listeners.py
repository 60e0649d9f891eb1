"""The listeners of an embedded Kafka: ports, security, and what a client needs to use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from contexture.errors import ConfigurationError
from contexture_sandbox.ports import LOOPBACK

Protocol = Literal["PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_LISTENER = "listener.name.client."
_KAFKA = "org.apache.kafka.common.security."
_VALIDATOR = f"{_KAFKA}oauthbearer.OAuthBearerValidatorCallbackHandler"
# Brokers and controllers talk among themselves as this user; so do tests on the internal listener.
_ADMINISTRATOR = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class Security:
    """How clients reach an embedded Kafka.

    Attributes:
        protocol: Kafka's name of it.
        users: passwords by user name, for the SASL protocols.
        client_certificates: whether TLS clients must show one (`client.pem` of the cluster's certificates).
        mechanisms: how users of the SASL protocols can log in; `client_settings` uses the first.
        access_control: clients may only do what ACLs allow; who comes by the internal listener may do everything.
        token_keys_url: for OAUTHBEARER, where the keys are (JWKS) that tokens are signed with.
    """

    protocol: Protocol = "PLAINTEXT"
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_certificates: bool = False
    mechanisms: tuple[Mechanism, ...] = ("SCRAM-SHA-512",)
    access_control: bool = False
    token_keys_url: str = ""

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
            properties[f"{_LISTENER}sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
            for mechanism in self.mechanisms:
                properties |= self._login(mechanism)
        if self.tls:
            properties[f"{_LISTENER}ssl.keystore.type"] = "PEM"
            properties[f"{_LISTENER}ssl.keystore.location"] = str(keystore)
            properties[f"{_LISTENER}ssl.truststore.type"] = "PEM"
            properties[f"{_LISTENER}ssl.truststore.location"] = str(keystore.with_name("ca.pem"))
            properties[f"{_LISTENER}ssl.client.auth"] = "required" if self.client_certificates else "none"
        if self.access_control:
            properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            properties["super.users"] = _ADMINISTRATOR
        return properties

    def jvm_options(self) -> tuple[str, ...]:
        """What a broker's JVM needs beside its settings."""
        # Kafka asks no address for keys that its administrator has not named.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.token_keys_url}"
        return (allowed,) if self.token_keys_url else ()

    def client_settings(self, certificates: Path, user: str | None = None) -> dict[str, str]:
        """What librdkafka needs beside `bootstrap.servers`; `user` is the first one unless named."""
        settings: dict[str, str] = {"security.protocol": self.protocol}
        if self.sasl:
            name = user or next(iter(self.users))
            settings |= {
                "sasl.mechanism": self.mechanisms[0],
                "sasl.username": name,
                "sasl.password": self.users[name],
            }
        if self.tls:
            settings["ssl.ca.location"] = str(certificates / "ca.pem")
        if self.client_certificates:
            settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(certificates / "client.pem")
        return settings

    def _login(self, mechanism: Mechanism) -> dict[str, str]:
        """How the broker checks users of one mechanism."""
        prefix = f"{_LISTENER}{mechanism.lower()}."
        if mechanism == "PLAIN":
            users = " ".join(f"user_{name}={_quoted(password)}" for name, password in self.users.items())
            return {f"{prefix}sasl.jaas.config": f"{_KAFKA}plain.PlainLoginModule required {users};"}
        if mechanism == "OAUTHBEARER":
            return {
                f"{prefix}sasl.jaas.config": f"{_KAFKA}oauthbearer.OAuthBearerLoginModule required;",
                f"{prefix}sasl.server.callback.handler.class": _VALIDATOR,
                f"{prefix}sasl.oauthbearer.jwks.endpoint.url": self.token_keys_url,
                f"{prefix}sasl.oauthbearer.expected.audience": "kafka",
            }
        return {f"{prefix}sasl.jaas.config": f"{_KAFKA}scram.ScramLoginModule required;"}


def _quoted(password: str) -> str:
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
