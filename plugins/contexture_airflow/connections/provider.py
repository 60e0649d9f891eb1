"""What Airflow's form for connections shows of our connection types.

Every process of Airflow loads this by the entry point `apache_airflow_provider`, so it imports nothing that costs time.
"""

from __future__ import annotations

from typing import Any

# As in contexture.operations.actions.connection_check, which is imported too slowly for here.
KAFKA = "contexture_kafka"
CONTEXT_BROKER = "contexture_ngsi"
STRUCTURE_REGISTRY = "contexture_sdmx"
_HOOKS = "contexture_airflow.connections.hooks"


def provider_info() -> dict[str, Any]:
    """Contexture as a provider of Airflow: three connection types, each with a test."""
    return {
        "package-name": "contexture",
        "name": "Contexture",
        "description": "Keeps Kafka topics equal to what a context broker and a structure registry hold.",
        "connection-types": [_kafka(), _context_broker(), _structure_registry()],
    }


def _kafka() -> dict[str, Any]:
    return {
        "connection-type": KAFKA,
        "hook-class-name": f"{_HOOKS}.KafkaClusterHook",
        "hook-name": "Kafka (Contexture)",
        "ui-field-behaviour": {
            "hidden-fields": ["schema"],
            "relabeling": {"host": "Brokers", "port": "Port of brokers without one", "login": "User"},
            "placeholders": {"host": "broker-1:9092,broker-2:9092", "port": "9092"},
        },
        "conn-fields": {
            "security.protocol": _choice("Security protocol", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
            "sasl.mechanism": _choice(
                "SASL mechanism", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"
            ),
            "ssl.ca.location": _text("Authorities (path of a PEM file)"),
            "ssl.certificate.location": _text("Client certificate (path of a PEM file)"),
            "ssl.key.location": _text("Its key (path of a PEM file)"),
            "ssl.key.password": _secret("Password of the key"),
            "message.max.bytes": _number("Largest record, bytes"),
            "contexture.profile": _choice("Profile", "latency", "throughput"),
        },
    }


def _context_broker() -> dict[str, Any]:
    return {
        "connection-type": CONTEXT_BROKER,
        "hook-class-name": f"{_HOOKS}.ContextBrokerHook",
        "hook-name": "Context broker (Contexture)",
        "ui-field-behaviour": _of_http("orion", "1026"),
        "conn-fields": _access(),
    }


def _structure_registry() -> dict[str, Any]:
    return {
        "connection-type": STRUCTURE_REGISTRY,
        "hook-class-name": f"{_HOOKS}.StructureRegistryHook",
        "hook-name": "Structure registry (Contexture)",
        "ui-field-behaviour": _of_http("registry.example/FusionMetadataRegistry", "443"),
        "conn-fields": {
            "flavour": _choice("Flavour", "auto", "fmr", "generic"),
            "api": _choice("Interface", "auto", "v1", "v2"),
            **_access(),
        },
    }


def _of_http(host: str, port: str) -> dict[str, Any]:
    return {
        "hidden-fields": [],
        "relabeling": {"schema": "http or https"},
        "placeholders": {"host": host, "port": port, "schema": "https"},
    }


def _access() -> dict[str, Any]:
    return {
        "authentication": _choice("Authentication", "basic", "oauth2", "keyrock"),
        "token": _secret("Bearer token that does not expire"),
        "token_url": _text("Where tokens are issued (oauth2, keyrock)"),
        "client_id": _text("Client id (oauth2)"),
        "client_secret": _secret("Client secret (oauth2)"),
        "scope": _text("Scope (oauth2)"),
        "timeout_seconds": _number("Time to wait for a response, seconds"),
    }


def _text(label: str) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["string", "null"]}}


def _secret(label: str) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["string", "null"], "format": "password"}}


def _number(label: str) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["integer", "null"], "minimum": 1}}


def _choice(label: str, *words: str) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["string", "null"], "enum": list(words)}}
