"""Configuration of what Contexture replaces: agents of Cygnus, Java's properties and its login text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from contexture.errors import ConfigurationError
from contexture.importers.cygnus.publications import import_agent
from contexture.kafka.jaas import login_options
from contexture.kafka.settings import ClientSettings
from tools.fuzz.target import Target

_AGENT = b"""# an agent
a.sources = http
a.sinks = kafka
a.channels = c
a.sources.http.channels = c
a.sources.http.type = http
a.sources.http.handler.default_service = vehicles
a.sinks.kafka.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink
a.sinks.kafka.channel = c
a.sinks.kafka.data_model = dm-by-attribute
a.sinks.kafka.broker_list = k1:9092,\\
    k2:9092
a.sinks.kafka.batch_size = 10
a.sinks.kafka.batch_retry_intervals = 5000, 10000
a.sinks.kafka.enable_name\\u005fmappings = true
a.channels.c.type = memory
"""
_LOGIN = (
    b'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" /* a */ password="p\\"q"; // end'
)
_EXTRA = (
    b'{"bootstrap.servers":"k:9092","security.protocol":"SASL_SSL","sasl.mechanism":"PLAIN","max.request.size":1048576,'
    b'"sasl.jaas.config":"a.PlainLoginModule required username=\\"u\\" password=\\"p\\";","buffer.memory":33554432,'
    b'"compression.type":"zstd","compression.zstd.level":3}'
)
_WORDS = (b"\\u00", b"\\\n", b"NGSIKafkaSink", b".sinks.", b"a.sinks.kafka.batch_ttl = ", b"9" * 5_000, b" = ")
_LOGIN_WORDS = (b"/*", b"*/", b"//", b"required", b"OAuthBearerLoginModule", b"Krb5LoginModule", b"=", b";", b"'")


def _agent(data: bytes) -> object:
    migration = import_agent(data.decode("utf-8", "replace"))
    return migration.is_clean, min(len(migration.drafts), 2)


def _login(data: bytes) -> object:
    try:
        return tuple(login_options(data.decode("utf-8", "replace"), "SCRAM-SHA-256"))
    except ValueError:  # what translates properties makes a problem of a connection of it
        return "refused"


def _kafka(data: bytes) -> object:
    try:
        extra = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"  # Airflow reads it
    return len(ClientSettings.from_extra(extra).producer()) if isinstance(extra, dict) else "no object"


def _inputs() -> Mapping[str, bytes]:
    return {"agent": _AGENT}


_CONFIGURATION = (ConfigurationError,)

TARGETS = (
    Target("cygnus", "agents of Cygnus", _agent, _inputs, "lines", _WORDS, _CONFIGURATION),
    Target("jaas", "Java's text of a login", _login, lambda: {"login": _LOGIN}, "bytes", _LOGIN_WORDS, _CONFIGURATION),
    Target("kafka", "properties of Kafka clients", _kafka, lambda: {"extra": _EXTRA}, "json", (), _CONFIGURATION),
)
