"""What readers of a publication's topics get, as its latest concluded outboxes hold it: the observed contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson
from genson import SchemaBuilder

from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore
from contexture.storage.schemas import HEADER_PREFIX

RECORDS: Final = 10_000
"""How many records are looked at, the latest first, unless the caller says more or fewer."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
OTHER: Final = "other"
"""The kind of values after the first `_MOST_KINDS` kinds, which are named after data."""

_MOST_KINDS: Final = 100
_COLUMNS: Final = ("topic", "key", "value")


@dataclass(slots=True)
class ValueShape:
    """The values of one kind: an entity type, or `structure`.

    Attributes:
        kind: its name.
        records: how many records with a value were looked at.
        topics: the topics that have them.
        media_type: of the values.
        lines: whether a value has several JSON documents, one on each line.
    """

    kind: str
    records: int = 0
    topics: set[str] = field(default_factory=set)
    media_type: str = "application/json"
    lines: bool = False
    _built: SchemaBuilder = field(default_factory=lambda: SchemaBuilder(schema_uri=None))

    def add(self, documents: list[Any]) -> None:
        """Adds the documents of one value."""
        self.records += 1
        self.lines = self.lines or len(documents) > 1
        for document in documents:
            self._built.add_object(document)

    def schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of a document; members that every record had are required, nulls are a type."""
        if not self.media_type.endswith("json"):
            return {"type": "string", "contentMediaType": self.media_type}
        return _without_schema(self._built.to_schema())


@dataclass(slots=True)
class ObservedContract:
    """The shapes of the records that were looked at.

    Attributes:
        publication: its name.
        fingerprint: of the publication, in the newest outbox.
        records: how many records were looked at.
        tombstones: how many of them have no value.
        without_key: how many of them have no key.
        since: when the oldest outbox that was looked at was prepared.
        topics: the topics, each with its number of records.
        headers: each header with the number of records that have it.
        values: the shapes of values by kind.
    """

    publication: str
    fingerprint: str
    records: int = 0
    tombstones: int = 0
    without_key: int = 0
    since: datetime | None = None
    topics: Counter[str] = field(default_factory=Counter)
    headers: Counter[str] = field(default_factory=Counter)
    values: dict[str, ValueShape] = field(default_factory=dict)
    _keys: SchemaBuilder = field(default_factory=lambda: SchemaBuilder(schema_uri=None))
    _keys_are_json: bool = True

    def add(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Adds a record."""
        self.records += 1
        self.topics[topic] += 1
        self._add_key(key)
        if value is None:
            self.tombstones += 1
            return
        documents = _documents(value)
        shape = self._shape(_kind(documents[0]) if documents else "structure")
        shape.topics.add(topic)
        if documents:
            shape.add(documents)
        else:
            shape.records += 1
            shape.media_type = "application/xml" if value.lstrip()[:1] == b"<" else "application/octet-stream"

    def key_schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of the key as a text; where every key is JSON, with the schema of its content."""
        kinds = ["string", "null"] if self.without_key else ["string"]
        schema: dict[str, Any] = {"type": kinds if len(kinds) > 1 else kinds[0]}
        if self._keys_are_json and self.without_key < self.records:
            schema |= {
                "contentMediaType": "application/json",
                "contentSchema": _without_schema(self._keys.to_schema()),
            }
        return schema

    def _add_key(self, key: bytes | None) -> None:
        if key is None:
            self.without_key += 1
        elif self._keys_are_json:
            document = _documents(key)
            # A number or a word in a key is a text that happens to be JSON.
            self._keys_are_json = len(document) == 1 and isinstance(document[0], list)
            if self._keys_are_json:
                self._keys.add_object(document[0])

    def _shape(self, kind: str) -> ValueShape:
        if kind not in self.values and len(self.values) >= _MOST_KINDS:
            kind = OTHER
        return self.values.setdefault(kind, ValueShape(kind))


def check_describable(publication: Publication) -> None:
    """Checks that stored outboxes hold values as readers get them.

    Raises:
        ConfigurationError: an encoder of a package changes them when they are sent.
    """
    encoder = publication.message.encoder
    if encoder is not None:
        raise ConfigurationError(
            f"the values of {publication.name} are what the encoder {encoder} makes, and outboxes hold them as they "
            "were before",
            next_step="describe what the encoder makes beside the package that offers it",
        )


def observe_contract(store: PublicationStore, *, records: int = RECORDS) -> ObservedContract:
    """Returns the shapes of the latest records that a publication has sent, as its stored outboxes hold them.

    Names and types are part of the result, values are not.

    Raises:
        ConfigurationError: no concluded outbox with records is stored.
        RetriableError: the storage failed.
    """
    found: ObservedContract | None = None
    for manifest, prepared_at in _concluded(store):
        found = found or ObservedContract(manifest.publication, manifest.fingerprint)
        found.since = prepared_at
        _observe(store, manifest, found, records)
        if found.records >= records:
            break
    if found is None or not found.records:
        raise ConfigurationError(
            "no concluded run of this publication with records is stored, so there is nothing to describe",
            next_step="run it, and look at its state with `contexture status`",
        )
    return found


def _concluded(store: PublicationStore) -> Iterator[tuple[Manifest, datetime]]:
    """Yields the manifests of concluded outboxes with records, the latest first, each with when it was prepared."""
    ended = [each for each in store.outboxes.all() if each.status == "concluded"]
    for each in sorted(ended, key=lambda status: status.sequence, reverse=True):
        manifest = store.outboxes.manifest(each.outbox)
        if manifest.records:
            yield manifest, each.steps[0].at


def _observe(store: PublicationStore, manifest: Manifest, found: ObservedContract, limit: int) -> None:
    for shard in manifest.shards:
        reader = store.reader(manifest, shard.shard)
        before = found.records
        for batch in reader.batches(0):
            rows = batch.slice(0, limit - found.records)
            for topic, key, value in zip(*(rows.column(name).to_pylist() for name in _COLUMNS), strict=True):
                found.add(topic, key, value)
            for name in rows.schema.names:
                if name.startswith(HEADER_PREFIX):
                    column = rows.column(name)
                    found.headers[name.removeprefix(HEADER_PREFIX)] += len(column) - column.null_count
            if found.records >= limit:
                break
        for name, _ in reader.headers:
            found.headers[name] += found.records - before
        if found.records >= limit:
            return


def _documents(value: bytes) -> list[Any]:
    """Returns the JSON documents of a value: one, or one on each line; none where it is no JSON."""
    try:
        return [orjson.loads(value)]
    except orjson.JSONDecodeError:
        pass
    try:
        return [orjson.loads(line) for line in value.splitlines() if line.strip()]
    except orjson.JSONDecodeError:
        return []


def _kind(document: Any) -> str:
    """Returns the entity type of a document, which may be inside a CloudEvent or a line of Cygnus."""
    inner = document
    for member in ("data", "body"):
        if isinstance(inner, Mapping) and isinstance(inner.get(member), Mapping):
            inner = inner[member]
    kind = inner.get("type") if isinstance(inner, Mapping) else None
    if isinstance(kind, list) and all(isinstance(each, str) for each in kind):
        return "+".join(kind)
    return kind if isinstance(kind, str) and kind else "structure" if _is_structure(inner) else OTHER


def _is_structure(document: Any) -> bool:
    return isinstance(document, Mapping) and "meta" in document and "data" in document


def _without_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "$schema"}
