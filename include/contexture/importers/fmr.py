"""From the Kafka configuration of a Fusion (Metadata) Registry to a publication and its two connections.

Its properties are those of Java's producer, and the registry's own: what its forms and database tables hold.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contexture.errors import ConfigurationError
from contexture.importers.properties_file import JavaProperty, decode_properties, parse_properties, read_bytes
from contexture.importers.result import (
    Draft,
    Imported,
    ImportResult,
    Outcome,
    ParameterResult,
    check_import,
    explain,
)
from contexture.kafka.java_properties import JAVA_NAMES, servers
from contexture.kafka.properties import refusal, unknown
from contexture.kafka.settings import is_secret, translate_and_check
from contexture.publications import check_name
from contexture.publications.problems import looks_secret, without_secrets
from contexture.publications.source import STRUCTURE_FORM
from contexture.publications.yaml_document import quote

_KAFKA: Final = "kafka_default"
_REGISTRY: Final = "registry"
_PREFIX: Final = "tx"
_JAAS: Final = "sasl.jaas.config"

_FORMATS: Final[Mapping[str, str]] = {
    "sdmxml10": "application/vnd.sdmx.structure+xml;version=1.0",
    "sdmxml20": "application/vnd.sdmx.structure+xml;version=2.0",
    "sdmxml21": STRUCTURE_FORM,
    "sdmxedi": "application/vnd.sdmx.structure;version=edi",
    "sdmxjson": "application/vnd.sdmx.json",
    "xlsx": "application/vnd.xlsx",
    "fusionjson": "application/vnd.fusion.json",
}
"""The formats of the producer by their names in the registry's documentation, without case and signs."""

_OF_CONNECTION = "of the Kafka connection"
# What forms, tables and documentation call the registry's own settings, without case and signs: what it is here.
_OWN: Final[Mapping[str, tuple[str, Outcome, str]]] = {
    **dict.fromkeys(("topic", "topics", "kafkatopic"), ("topics", "kept", "topics.topics")),
    "format": ("format", "kept", "source.media_type"),
    **dict.fromkeys(
        ("transactionalid", "transactionprefix", "transactionidprefix"),
        ("prefix", "kept", "publish.transactional_id_prefix"),
    ),
    **dict.fromkeys(("adminemail", "adminemailaddress"), ("mail", "kept", "notify.mail")),
    "id": ("id", "no longer needed", "a publication has a name of its own, `name`"),
    "host": ("host", "replaced", f"bootstrap.servers {_OF_CONNECTION}"),
    "port": ("port", "replaced", f"bootstrap.servers {_OF_CONNECTION}"),
    "servers": ("bootstrap.servers", "replaced", f"bootstrap.servers {_OF_CONNECTION}"),
    "clientid": ("client.id", "kept", f"client.id {_OF_CONNECTION}"),
    "compressionalgorithm": ("compression.type", "replaced", f"compression.type {_OF_CONNECTION}"),
    "enablessl": ("security.protocol", "replaced", f"security.protocol: SSL {_OF_CONNECTION}"),
    "enablekerberossecurity": (
        "kerberos",
        "needs a decision",
        f"set security.protocol, sasl.kerberos.principal and sasl.kerberos.keytab {_OF_CONNECTION}",
    ),
}
_SIGNS = re.compile(r"[^a-z0-9]")
_REMOVE = re.compile(r"^remove it(: | |, or )")
_OFF: Final = frozenset({"false", "no", "off", "0"})
_KNOWN: Final = "SDMX-ML 2.1, Fusion-JSON or application/vnd.fusion.json"


@dataclass(frozen=True, slots=True)
class ProducerRequest:
    """What the properties do not contain, or what is to be used in its place; None: as the properties have it.

    Attributes:
        name: of the publication.
        topic: the topics, with commas between them.
        form: a format of the producer, or its media type.
        registry: the address of the registry.
    """

    name: str = "structures"
    topic: str | None = None
    form: str | None = None
    registry: str | None = None


def from_fmr(file: Path, request: ProducerRequest) -> Imported:
    """Returns the publication of a registry's producer, checked.

    Raises:
        ConfigurationError: the file cannot be read, or names no Kafka.
    """
    return check_import(import_producer(decode_properties(read_bytes(file)), request, origin=file.name), {})


def import_producer(text: str, request: ProducerRequest, *, origin: str = "properties") -> ImportResult:
    """Returns the publication that does what a registry's producer did, with the outcome of each property.

    Raises:
        ConfigurationError: the text is no properties, or names no Kafka; or no publication can have the name.
    """
    check_name(request.name)
    return _Import(parse_properties(text), request, origin).result()


class _Import:
    """One import while it runs."""

    def __init__(self, properties: list[JavaProperty], request: ProducerRequest, origin: str) -> None:
        last = {each.key: each for each in properties}
        self._properties = [each for each in properties if last[each.key] is each]
        self._repeated = [each for each in properties if last[each.key] is not each]
        self._request = request
        self._origin = origin
        self._own: dict[str, str] = {}
        self._extra: dict[str, object] = {}
        self._outcomes: list[ParameterResult] = []
        self._decisions: list[str] = []

    def result(self) -> ImportResult:
        for each in self._repeated:
            self._explain(each, "no longer needed", "a later line of the same key replaces it")
        java = [each for each in self._properties if not self._take_own(each)]
        if "host" in self._own:
            port = self._own.get("port", "")
            self._extra["bootstrap.servers"] = servers(self._own["host"], int(port) if port.isdecimal() else None)
        for each in java:
            self._offer(each)
        self._drop_refused({each.key: each for each in java})
        if not self._extra.get("bootstrap.servers"):
            raise ConfigurationError(
                "the file names no Kafka: it has neither bootstrap.servers nor host",
                next_step="name the properties of the registry's Kafka connection, such as bootstrap.servers=host:9092",
            )
        draft = self._draft()
        explained = tuple(sorted(self._outcomes, key=lambda each: each.line))
        return ImportResult((draft,), explained, self._connections(), tuple(dict.fromkeys(self._decisions)))

    def _explain(self, origin: JavaProperty, outcome: Outcome, why: str) -> None:
        self._outcomes.append(explain(origin, outcome, why))

    def _take_own(self, origin: JavaProperty) -> bool:
        """Takes a setting of the registry itself; False for a property of Java's producer."""
        value = origin.value.strip()
        meaning, outcome, why = _OWN.get(_SIGNS.sub("", origin.key.lower()), ("", "unknown", ""))
        if not meaning:
            return False
        if not value or (meaning in {"security.protocol", "kerberos"} and value.lower() in _OFF):
            self._explain(origin, "no longer needed", "it is empty or off, as it is without a property")
            return True
        if meaning == "format" and media_type(value) is None:
            self._explain(
                origin, "wrong", f"it is not a format of the registry: name one by --format, such as {_KNOWN}"
            )
            return True
        self._explain(origin, outcome, why)
        if "." in meaning:
            self._extra[meaning] = "SSL" if meaning == "security.protocol" else value
        else:
            self._own[meaning] = value
        return True

    def _offer(self, origin: JavaProperty) -> None:
        """Offers a property of Java's producer to the connection; what the client refuses is taken out later."""
        key, value = origin.key, origin.value.strip()
        if key == _JAAS:
            return
        if key not in JAVA_NAMES and unknown([key]):
            advice = refusal([key]).next_step
            outcome = explain(origin, "unknown", f"the Kafka client has no such property; {advice}")
            # What is not understood may be the rest of a login.
            self._outcomes.append(outcome.without_value())
        elif not value and key != "ssl.endpoint.identification.algorithm":
            self._explain(origin, "no longer needed", "it is empty, so that the client's default counts")
        elif _holds_secret(key, value):
            self._extra[key] = _placeholder(key)
        else:
            self._extra[key] = value

    def _drop_refused(self, origins: Mapping[str, JavaProperty]) -> None:
        login = self._login(origins.get(_JAAS))
        self._extra.setdefault("bootstrap.servers", "")
        refused = self._refused()
        for key in [key for key in origins if key in self._extra]:
            advice, origin = refused.get(key), origins[key]
            if advice is None:
                self._explain_accepted(origin)
                continue
            del self._extra[key]
            reason = _REMOVE.sub("", advice)
            self._explain(origin, "needs a decision" if reason == advice else "no longer needed", reason)
        self._extra |= login
        for name, advice in self._refused().items():
            if name != "bootstrap.servers":
                self._decisions.append(f"{name} {_OF_CONNECTION}: {advice}")

    def _refused(self) -> dict[str, str]:
        """Returns what the client refuses, by the name in the file, with the advice."""
        found = translate_and_check(self._extra)
        named = (problem.partition(": ") for problem in found.problems)
        return {found.sources.get(name, name): advice for name, _, advice in named}

    def _explain_accepted(self, origin: JavaProperty) -> None:
        key = origin.key
        if self._extra[key] == _placeholder(key):
            self._explain(origin, "needs a decision", f"enter it in place of {_placeholder(key)} in the connection")
            return
        self._explain(origin, "kept", f"{key} {_OF_CONNECTION}")
        if key.endswith(".location"):
            self._decisions.append(f"the file of {key}: copy it to the machines of Airflow's tasks, to the same path")

    def _login(self, origin: JavaProperty | None) -> dict[str, object]:
        """Returns the options that Java's text of a login has, secrets as placeholders."""
        if origin is None:
            return {}
        given = {name: self._extra[name] for name in ("sasl.mechanism",) if name in self._extra}
        found = translate_and_check({**given, _JAAS: origin.value})
        problems = [problem for problem in found.problems if problem.startswith(_JAAS)]
        if problems or not origin.value.strip():
            self._explain(origin, "needs a decision", problems[0].partition(": ")[2] if problems else "it is empty")
            return {}
        options = {
            name: _placeholder(name) if _holds_secret(name, str(value)) else value
            for name, value in found.options.items()
            if found.sources[name] == _JAAS and name not in given
        }
        secrets = [str(value) for value in options.values() if str(value).startswith("<")]
        names = ", ".join(options)
        why = f"{names} {_OF_CONNECTION}"
        if secrets:
            self._explain(origin, "needs a decision", f"{why}: enter the value in place of {', '.join(secrets)}")
        else:
            self._explain(origin, "replaced", why)
        return options

    def _connections(self) -> tuple[str, ...]:
        address = self._request.registry or "https://registry.example.org/FusionRegistry"
        extra = json.dumps(self._extra, ensure_ascii=False)
        return (
            f"airflow connections add {_REGISTRY} --conn-type http --conn-host {shlex.quote(address)}",
            f"airflow connections add {_KAFKA} --conn-type kafka --conn-extra {shlex.quote(extra)}",
        )

    def _draft(self) -> Draft:
        topics = self._request.topic or self._own.get("topics", "")
        form = media_type(self._request.form or self._own.get("format", ""))
        if self._request.form and form is None:
            raise ConfigurationError(
                f"{self._request.form!r} is not a format of the registry",
                next_step=f"give one such as {_KNOWN}",
            )
        if not topics:
            self._decisions.append("the topic: the file has none; name it by --topic, or change it in the publication")
        elif self._request.topic is None:
            self._decisions.append(
                f"the topics {topics}: the registry's producer still sends to them, and two producers double records; "
                "name others by --topic until you switch"
            )
        if form is None:
            self._decisions.append("the format: the file has none; SDMX-ML 2.1 is written. Name another by --format")
        if self._request.registry is None:
            self._decisions.append("the address of the registry: name it by --registry, or in the connection")
        self._decisions += [
            "the login for the registry: without --conn-login and --conn-password only public structures are read",
            "the first load: a first run sends nothing; "
            f"`contexture resync {self._request.name} --mode full --reason 'first load'` sends everything",
            "replicas of topics that do not exist yet: topics.replication_factor; without it the brokers' default",
        ]
        mail = [each for each in re.split(r"[\s,;]+", self._own.get("mail", "")) if each]
        named = [each.strip() for each in (topics or f"{self._request.name}-new").split(",") if each.strip()]
        lines = [
            f"# Made by `contexture import fmr` from {quote(self._origin)}.",
            "# The same keys, structures and tombstones; differences: docs/how-to/move-from-fusion-registry.md",
            f"name: {self._request.name}",
            "description: What the registry's own Kafka producer published",
            'schedule: "* * * * *"  # the producer sent immediately; the registry is queried this often',
            "source:",
            "  kind: sdmx",
            f"  connection: {_REGISTRY}",
            f"  media_type: {quote(form or STRUCTURE_FORM)}  # the format of the producer",
            "topics:",
            f"  topics: [{', '.join(map(quote, named))}]" + ("" if topics else "  # CHANGE IT: the file names none"),
            "  keep: latest  # compacted: the newest record of each structure stays",
            "publish:",
            f"  connection: {_KAFKA}  # the properties of the producer are in it",
            f"  transactional_id_prefix: {quote(self._own.get('prefix', _PREFIX))}",
            *(["notify:", f"  mail: [{', '.join(map(quote, mail))}]"] if mail else []),
            "resync:",
            "  on_startup: pending  # the producer's idle start; full sends everything at each start of Airflow",
        ]
        return Draft(self._request.name, "\n".join(lines) + "\n", self._origin)


def media_type(text: str) -> str | None:
    """Returns the media type that a format of the producer has; None where there is no such format."""
    return text.strip() if "/" in text else _FORMATS.get(_SIGNS.sub("", text.lower()).removesuffix("flat"))


def _holds_secret(name: str, value: str) -> bool:
    return is_secret(name) or looks_secret(name) or without_secrets(value) != value


def _placeholder(name: str) -> str:
    return f"<{name}>"
