"""Evaluating context entities: parse, rules, identity, comparison with state, rendering.

Works on one run of consecutive landing rows at a time, so that state is asked once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from contexture.changes import Verdict
from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity, content_hash, identity_hash, identity_key
from contexture.messages.rendering import renderer
from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.ngsi.rules import RuleOptions, Violation, check_entity, unreadable
from contexture.outbox.state_index import StateIndex
from spark_jobs.preparation.evaluated import EvaluatedRows, Refusal, evaluated_schema
from spark_jobs.preparation.settings import MAXIMUM_PARTS, Preparation, event_number
from spark_jobs.quality.columns import column_names

MAXIMUM_RECORD_BYTES = 1_000_000
"""The client's and the broker's default limit of one record; `topics.config` may raise it."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One landing row as Python values; times in microseconds since 1970."""

    number: int
    ordinal: int
    operation: str
    path: str
    id: str
    type: str
    body: bytes
    modified_at: int | None
    received_at: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One event that no rule has refused, before it is known whether the target has it already."""

    row: _Row
    part: int
    parsed: ParsedEntity
    attribute: AttributeName | None
    key: bytes
    identity_hash: bytes
    entity_hash: bytes
    content_hash: bytes
    warnings: str | None


class EntityEvaluator:
    """Evaluates landing rows of one publication against one state."""

    def __init__(self, preparation: Preparation, index: StateIndex) -> None:
        publication = preparation.publication
        self._service = publication.source.service
        self._everything = preparation.everything
        self._by_attribute = preparation.by_attribute
        self._joins_lines = preparation.joins_lines
        self._index = index
        self._render = renderer(publication)
        self._options = RuleOptions.for_publication(publication, preparation.reference_time)
        self._schema = evaluated_schema(preparation)
        self._judged = tuple(column_names(publication).items())
        self._maximum_bytes = int(publication.topics.config.get("max.message.bytes", MAXIMUM_RECORD_BYTES))

    def evaluate(self, run: Any) -> EvaluatedRows:
        """Evaluates a record batch of landing rows."""
        rows = EvaluatedRows(self._schema, self._joins_lines)
        candidates = [candidate for row in _rows(run) for candidate in self._candidates(row, rows)]
        hashes = pa.array([candidate.identity_hash for candidate in candidates], pa.binary(16))
        for candidate, held in zip(candidates, self._index.find(hashes), strict=True):
            self._decide(candidate, held, rows)
        return rows

    def _candidates(self, row: _Row, rows: EvaluatedRows) -> Iterator[_Candidate]:
        if row.operation == "present":
            self._note(rows, row, Verdict.PRESENT, self._shown_identity(row))
            return
        try:
            parsed = parse_entity(row.body, service=self._service, service_path_hint=row.path)
        except EntityError as error:
            self._refuse(rows, row, self._shown_identity(row), unreadable(error, self._options))
            return
        violations = check_entity(parsed, self._options)
        errors = [violation for violation in violations if violation.severity == "error"]
        if errors:
            self._refuse(rows, row, parsed.identity, errors)
        else:
            yield from self._split(row, parsed, ",".join(item.rule for item in violations) or None)

    def _split(self, row: _Row, parsed: ParsedEntity, warnings: str | None) -> Iterator[_Candidate]:
        entity_key = identity_key(parsed.identity)
        entity_hash = identity_hash(entity_key)
        if not self._by_attribute:
            content = content_hash(parsed.entity)
            yield _Candidate(row, 0, parsed, None, entity_key, entity_hash, entity_hash, content, warnings)
            return
        for part, (name, value) in enumerate(list(parsed.attributes.items())[:MAXIMUM_PARTS]):
            attribute = AttributeName(name)
            key = identity_key(parsed.identity, attribute)
            content = content_hash({name: value})
            yield _Candidate(row, part, parsed, attribute, key, identity_hash(key), entity_hash, content, warnings)

    def _decide(self, candidate: _Candidate, held: bytes | None, rows: EvaluatedRows) -> None:
        if held == candidate.content_hash and not self._everything:
            self._accept(rows, candidate, Verdict.UNCHANGED, None)
            return
        row, parsed = candidate.row, candidate.parsed
        try:
            rendered = self._render(parsed.identity, parsed.entity, candidate.attribute, row.received_at // 1000)
        except RejectedError as error:
            rule = str(error.context.get("rule", "topic-length" if "opic" in type(error).__name__ else "body"))
            self._refuse_event(rows, candidate, Violation(rule, "error", error.message[:200]))
            return
        size = len(rendered.value) + len(rendered.key or b"")
        if size > self._maximum_bytes:
            message = f"the record has {size} bytes, more than the {self._maximum_bytes} that Kafka takes"
            self._refuse_event(rows, candidate, Violation("size", "error", message))
            return
        self._accept(rows, candidate, Verdict.SEND, rendered.topics[0])
        self._send(rows, candidate, rendered.topics, rendered.key, rendered.value)

    def _send(
        self, rows: EvaluatedRows, candidate: _Candidate, topics: tuple[str, ...], key: bytes | None, value: bytes
    ) -> None:
        row, columns = candidate.row, rows.rendered_columns
        moment = row.modified_at if row.modified_at is not None else row.received_at
        columns["event"].append(event_number(row.ordinal, candidate.part))
        columns["topics"].append(topics)
        columns["key"].append(key)
        columns["value"].append(value)
        columns["timestamp"].append(moment // 1000)
        columns["identity"].append(candidate.key)
        columns["identity_hash"].append(candidate.identity_hash)
        columns["entity_hash"].append(candidate.entity_hash)
        columns["content_hash"].append(candidate.content_hash)
        columns["modified_at"].append(row.modified_at)

    def _accept(self, rows: EvaluatedRows, candidate: _Candidate, verdict: Verdict, topic: str | None) -> None:
        columns, row, identity = rows.narrow_columns, candidate.row, candidate.parsed.identity
        _append_event(columns, row, candidate.part, verdict, candidate.identity_hash, candidate.entity_hash)
        columns["content_hash"].append(candidate.content_hash)
        columns["rules"].append(None)
        columns["warnings"].append(candidate.warnings if candidate.part == 0 else None)
        columns["identity"].append(candidate.key.decode("utf-8", "replace"))
        _append_identity(columns, identity, topic)
        for name, safe in self._judged:
            kind, value = _judged_attribute(candidate.parsed.attributes.get(name))
            columns[f"type_{safe}"].append(kind)
            columns[f"value_{safe}"].append(value)

    def _refuse(self, rows: EvaluatedRows, row: _Row, identity: ContextIdentity, errors: list[Violation]) -> None:
        rows.refusals += [Refusal(row.number, item.rule, item.severity, item.message) for item in errors]
        self._note(rows, row, Verdict.QUARANTINED, identity, ",".join(dict.fromkeys(item.rule for item in errors)))

    def _refuse_event(self, rows: EvaluatedRows, candidate: _Candidate, error: Violation) -> None:
        rows.refusals.append(Refusal(candidate.row.number, error.rule, error.severity, error.message))
        columns = rows.narrow_columns
        _append_event(
            columns, candidate.row, candidate.part, Verdict.QUARANTINED, candidate.identity_hash, candidate.entity_hash
        )
        self._append_unjudged(columns, candidate.parsed.identity, error.rule)

    def _note(
        self, rows: EvaluatedRows, row: _Row, verdict: Verdict, identity: ContextIdentity, rules: str | None = None
    ) -> None:
        entity_hash = identity_hash(identity_key(identity))
        _append_event(rows.narrow_columns, row, 0, verdict, entity_hash, entity_hash)
        self._append_unjudged(rows.narrow_columns, identity, rules)

    def _append_unjudged(self, columns: dict[str, list[object]], identity: ContextIdentity, rules: str | None) -> None:
        columns["content_hash"].append(None)
        columns["rules"].append(rules)
        columns["warnings"].append(None)
        columns["identity"].append(None)
        _append_identity(columns, identity, None)
        for _, safe in self._judged:
            columns[f"type_{safe}"].append(None)
            columns[f"value_{safe}"].append(None)

    def _shown_identity(self, row: _Row) -> ContextIdentity:
        return ContextIdentity(self._service, row.path, row.id, row.type)


def _append_event(
    columns: dict[str, list[object]], row: _Row, part: int, verdict: Verdict, identity: bytes, entity: bytes
) -> None:
    columns["event"].append(event_number(row.ordinal, part))
    columns["ordinal"].append(row.ordinal)
    columns["part"].append(part)
    columns["verdict"].append(int(verdict))
    columns["identity_hash"].append(identity)
    columns["entity_hash"].append(entity)
    columns["modified_at"].append(row.modified_at)
    columns["received_at"].append(row.received_at)


def _append_identity(columns: dict[str, list[object]], identity: ContextIdentity, topic: str | None) -> None:
    columns["service"].append(identity.service)
    columns["service_path"].append(identity.service_path)
    columns["id"].append(identity.id)
    columns["type"].append(identity.type)
    columns["topic"].append(topic)


def _judged_attribute(attribute: object) -> tuple[str | None, float | None]:
    if not isinstance(attribute, dict):
        return None, None
    kind, value = attribute.get("type"), attribute.get("value")
    if isinstance(value, orjson.Fragment):
        value = float(orjson.dumps(value))
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return (kind if isinstance(kind, str) else ""), number


def _rows(run: Any) -> Iterator[_Row]:
    names = ("ordinal", "operation", "path", "id", "type", "body")
    columns = [run.column(name).to_pylist() for name in names]
    columns += [run.column(name).cast(pa.int64()).to_pylist() for name in ("modified_at", "received_at")]
    for number, (ordinal, operation, path, entity_id, kind, body, modified, received) in enumerate(
        zip(*columns, strict=True)
    ):
        yield _Row(
            number, ordinal, operation, path or "/", entity_id or "", kind or "", body or b"", modified, received
        )
