"""The evaluation of landing rows: the one pass over the data that checks and renders it.

`evaluation(context)` returns the function for `mapInArrow`. It reads landing rows. It writes the rendered events that
may be sent, the refused rows, and one narrow row per event for planning and for the checkpoint (see `rows`).

It works on many rows at a time, so that state is read once for all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa

from contexture.events import ContextIdentity, identity_hash, identity_key
from contexture.events.rules import Violation
from contexture.publications import NgsiPublication
from contexture.records.changes import ChangeKind
from contexture.records.messages.rendering import type_of
from contexture.records.topics.collisions import IdentityIndex
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity, targets
from contexture.sources.ngsi.notifications.notification import notified_form
from contexture.sources.ngsi.notifications.parsing import parse_notified
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity, unreadable
from contexture.sources.ngsi.rules.values import coerce_numbers
from contexture.storage.schemas import QUARANTINE
from contexture.storage.state import StateLookup, load_lookup
from spark_jobs.entities.attributes import (
    ATTRIBUTES_FOLDER,
    JudgedAttributes,
    SeenTypes,
    attribute_rows,
    judges_attributes,
)
from spark_jobs.entities.render import Candidate, LandedRow, RecordRenderer, landed_rows, parts, whole
from spark_jobs.entities.rows import (
    EvaluatedRows,
    NarrowRow,
    RenderedRow,
    RuleRefusal,
    evaluated_folder,
    evaluated_schema,
    write_rendered,
)
from spark_jobs.shared.context import MAXIMUM_PARTS, RunFiles, StageContext, event_number


class PublishedHashes:
    """The content hashes that the target has, read from state once for many events.

    Args:
        context: of the stage.
        lookup: reads its state; with times, if entities that were written again without a change are sent.
    """

    def __init__(self, context: StageContext, lookup: StateLookup) -> None:
        self._everything = context.everything
        self._suppresses = NgsiPublication.of(context.publication).source.suppress_unchanged
        self._lookup = lookup

    def contain(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Returns whether the target has each candidate unchanged; if everything is sent, state is not read."""
        if self._everything or not candidates:
            return [False] * len(candidates)
        identities = pa.array([candidate.identity_hash for candidate in candidates], pa.binary(16))
        entities = pa.array([candidate.entity_hash for candidate in candidates], pa.binary(16))
        if self._suppresses:
            contents = self._lookup.contents(identities, entities)
            return [one.content_hash == held for one, held in zip(candidates, contents, strict=True)]
        held = self._lookup.contents_and_times(identities, entities)
        return [
            one.content_hash == content and not _is_later(one.modified_at, time)
            for one, (content, time) in zip(candidates, held, strict=True)
        ]


def _is_later(time: int | None, held: int | None) -> bool:
    """Returns whether a time of change is later than the one that the target has."""
    return time is not None and (held is None or time > held)


NUMBER_STRING = "number-string"
ROWS_AT_ONCE = 1000
"""State is read once for this many rows, whose parsed entities are in memory at once."""


class EntityEvaluator:
    """Evaluates landing rows of one publication against one state."""

    def __init__(self, context: StageContext, lookup: StateLookup) -> None:
        publication = NgsiPublication.of(context.publication)
        self._service = publication.source.service
        self._form = publication.source.api
        self._in_turn = context.in_turn
        self._by_attribute = context.by_attribute
        self._published = PublishedHashes(context, lookup)
        self._render = RecordRenderer(context)
        self._meanings = IdentityIndex(publication.topics)
        self._coerces_numbers = publication.quality.coerce_numbers
        self._judges_targets, self._types = context.judges_targets, frozenset(publication.source.types)
        self.seen_types = SeenTypes() if "type-drift" in context.judged_rules else None
        self._options = EntityRuleOptions.for_publication(publication, context.reference_time)
        self._judged = JudgedAttributes(publication)
        self._judges_attributes = judges_attributes(publication)

    def evaluate(self, run: Any) -> EvaluatedRows:
        """Evaluates a record batch of landing rows."""
        rows = EvaluatedRows()
        for first in range(0, run.num_rows, ROWS_AT_ONCE):
            self._evaluate(landed_rows(run.slice(first, ROWS_AT_ONCE), first), rows)
        return rows

    def _evaluate(self, landed: Iterator[LandedRow], rows: EvaluatedRows) -> None:
        candidates = [candidate for row in landed for candidate in self._candidates(row, rows)]
        for candidate, is_published in zip(candidates, self._published.contain(candidates), strict=True):
            verdict = ChangeKind.UNCHANGED if is_published else ChangeKind.SEND
            # In a sequence of notifications, an event that equals state may follow one that does not.
            if verdict == ChangeKind.SEND or self._in_turn:
                self._send(rows, candidate, verdict)
            else:
                self._add_row(rows, candidate, verdict)

    def _candidates(self, row: LandedRow, rows: EvaluatedRows) -> Iterator[Candidate]:
        if row.operation == "present":
            self._add_row_without_content(rows, row, ChangeKind.PRESENT, self._shown_identity(row))
            return
        if row.operation == "delete":
            self._add_row_without_content(rows, row, ChangeKind.DELETE, self._shown_identity(row))
            return
        try:
            row, parsed = self._parsed(row)
        except EntityError as error:
            self._refuse(rows, row, self._shown_identity(row), unreadable(error, self._options))
            return
        parsed, read = coerce_numbers(parsed) if self._coerces_numbers else parsed, parsed
        violations = check_entity(parsed, self._options)
        errors = [violation for violation in violations if violation.severity == "error"]
        if self._by_attribute and len(parsed.attributes) > MAXIMUM_PARTS:
            errors.append(_too_many(parsed))
        if errors:
            # The identity as it landed, because an id that is no text would otherwise name another entity.
            self._refuse(rows, row, self._shown_identity(row), errors)
            return
        coerced = [NUMBER_STRING] if parsed is not read and NUMBER_STRING in self._options.severities else []
        warnings = ",".join([*coerced, *(item.rule for item in violations)]) or None
        if self.seen_types is not None:
            self.seen_types.add(parsed)
        if not self._by_attribute:
            yield whole(row, parsed, warnings)
        elif parsed.attributes:
            yield from parts(row, parsed, warnings)
        else:
            # Nothing is sent, but the entity was read as a whole: its attributes in state are gone.
            self._add_row_without_content(rows, row, ChangeKind.UNCHANGED, parsed.identity, warnings=warnings)

    def _parsed(self, row: LandedRow) -> tuple[LandedRow, ParsedEntity]:
        form = notified_form(row.media_type)
        if form is None:
            return row, parse_entity(
                row.body,
                service=self._service,
                service_path_hint=row.path,
                form=self._form,
                # Every page of NGSIv2 is requested with these times; they distinguish users' attributes from builtins.
                attribute_times=self._by_attribute or self._form == "ngsiv2",
            )
        parsed = parse_notified(row.body, form, self._service, row.path, attribute_times=self._by_attribute)
        if parsed.modified_at is None:
            return row, parsed
        # A read takes the time from each page as a whole. A notification has it in its body, and only if requested.
        return msgspec.structs.replace(row, modified_at=round(parsed.modified_at.timestamp() * 1_000_000)), parsed

    def _send(self, rows: EvaluatedRows, candidate: Candidate, verdict: ChangeKind) -> None:
        rendered = self._render(candidate)
        if isinstance(rendered, Violation):
            rows.refusals.append(RuleRefusal(candidate.row.number, rendered.rule, rendered.severity, rendered.message))
            self._add_row(rows, candidate, ChangeKind.QUARANTINED, rule=rendered.rule)
            return
        row = candidate.row
        moment = candidate.modified_at if candidate.modified_at is not None else row.received_at
        self._add_row(rows, candidate, verdict, topic=rendered.topics[0], meaning=self._meaning(candidate))
        rows.rendered_rows.append(
            RenderedRow(
                event_number(row.ordinal, candidate.part),
                rendered.topics,
                rendered.key,
                rendered.value,
                moment // 1000,
                candidate.key,
                candidate.identity_hash,
                candidate.entity_hash,
                candidate.content_hash,
                candidate.modified_at,
                candidate.parsed.expires_at,
                rendered.headers,
            )
        )

    def _meaning(self, candidate: Candidate) -> int | None:
        identity, attribute = candidate.parsed.identity, candidate.attribute
        kind = type_of(candidate.parsed.entity, attribute) if attribute is not None else ""
        return self._meanings.of_event(identity, attribute, kind)

    def _add_row(
        self,
        rows: EvaluatedRows,
        candidate: Candidate,
        verdict: ChangeKind,
        *,
        topic: str | None = None,
        meaning: int | None = None,
        rule: str | None = None,
    ) -> None:
        row, part, identity = candidate.row, candidate.part, candidate.parsed.identity
        if self._judges_attributes and rule is None:
            rows.attribute_rows += attribute_rows(candidate)
        rows.narrow_rows.append(
            NarrowRow(
                event_number(row.ordinal, part),
                part,
                verdict.value,
                candidate.identity_hash,
                candidate.entity_hash,
                candidate.content_hash if rule is None else None,
                candidate.modified_at,
                row.modified_at,
                candidate.parsed.expires_at,
                row.received_at,
                notified_form(row.media_type) is not None,
                bool(identity.id),
                rule,
                candidate.warnings if part == 0 else None,
                candidate.key.decode(),
                identity.service_path,
                identity.id,
                identity.type,
                topic,
                meaning,
                (targets(candidate.parsed, self._types) or None) if self._judges_targets and part == 0 else None,
                self._judged.of(candidate.parsed),
            )
        )

    def _refuse(self, rows: EvaluatedRows, row: LandedRow, identity: ContextIdentity, errors: list[Violation]) -> None:
        rows.refusals += [RuleRefusal(row.number, item.rule, item.severity, item.message) for item in errors]
        rules = ",".join(dict.fromkeys(item.rule for item in errors))
        self._add_row_without_content(rows, row, ChangeKind.QUARANTINED, identity, rules=rules)

    def _add_row_without_content(
        self,
        rows: EvaluatedRows,
        row: LandedRow,
        verdict: ChangeKind,
        identity: ContextIdentity,
        *,
        rules: str | None = None,
        warnings: str | None = None,
    ) -> None:
        """Adds the narrow row of an entity without content to send: a head, a deletion, a refusal, or no attributes."""
        key = identity_key(identity)
        hashed = identity_hash(key)
        rows.narrow_rows.append(
            NarrowRow(
                event=event_number(row.ordinal, 0),
                part=0,
                verdict=verdict.value,
                identity_hash=hashed,
                entity_hash=hashed,
                content_hash=None,
                modified_at=row.modified_at,
                entity_modified_at=row.modified_at,
                expires_at=None,
                received_at=row.received_at,
                notified=notified_form(row.media_type) is not None,
                identified=bool(identity.id),
                rules=rules,
                warnings=warnings,
                identity=key.decode(),
                service_path=identity.service_path,
                id=identity.id,
                type=identity.type,
                topic=None,
                meaning=None,
                targets=None,
                judged=self._judged.nothing,
            )
        )

    def _shown_identity(self, row: LandedRow) -> ContextIdentity:
        return ContextIdentity(self._service, row.path, row.id, row.type)


def _too_many(parsed: ParsedEntity) -> Violation:
    message = f"the entity has {len(parsed.attributes)} attributes; dm-by-attribute can send {MAXIMUM_PARTS}"
    return Violation("body", "error", message)


Evaluation = Callable[[Iterable[Any]], Iterator[Any]]

EVALUATED = pa.schema([pa.field("events", pa.int64())])
"""The only row that Spark receives for each record batch: its number of events."""


def evaluation(context: StageContext) -> Evaluation:
    """Returns the function that evaluates record batches of the landing; it yields a row of EVALUATED for each."""

    def evaluate(batches: Iterable[Any]) -> Iterator[Any]:
        rewritten = not NgsiPublication.of(context.publication).source.suppress_unchanged
        name, pointer = context.publication.name, context.pointer_json
        lookup = load_lookup(context.order.home, name, pointer, times=rewritten)
        evaluator = EntityEvaluator(context, lookup)
        with RunFiles() as files:
            began: int | None = None
            following: int | None = None
            for batch in batches:
                for run in consecutive_runs(batch):
                    first, last = run.column("ordinal")[0].as_py(), run.column("ordinal")[run.num_rows - 1].as_py()
                    if first != following:
                        files.begin_run()
                    began, following = first if began is None else began, last + 1
                    with without_cycle_collection():
                        rows = evaluator.evaluate(run)
                        _store(rows, run, files, context)
                    yield pa.record_batch([[len(rows.narrow_rows)]], schema=EVALUATED)
        if evaluator.seen_types is not None and began is not None:
            evaluator.seen_types.save(context.work, began)

    return evaluate


def consecutive_runs(batch: Any) -> Iterator[Any]:
    """Splits a batch where an ordinal is not the successor of the one before."""
    if not batch.num_rows:
        return
    ordinals = batch.column("ordinal").to_numpy()
    start = 0
    for gap in ((ordinals[1:] - ordinals[:-1]) != 1).nonzero()[0] + 1:
        yield batch.slice(start, int(gap) - start)
        start = int(gap)
    yield batch.slice(start)


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Disables Python's search for reference cycles within the block.

    Parsed entities have no cycles and are many. The search visits all of them again and again: it took a quarter of the
    evaluation, and its share grows with the rows of a batch.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _store(rows: EvaluatedRows, run: Any, files: RunFiles, context: StageContext) -> None:
    files.write(evaluated_folder(context), rows.narrow(evaluated_schema(context)))
    write_rendered(files, context.work, rows.rendered(context))
    files.write(context.work.folder(ATTRIBUTES_FOLDER), rows.attributes())
    if rows.refusals:
        _write_quarantine(rows, run, context)


def _write_quarantine(rows: EvaluatedRows, run: Any, context: StageContext) -> None:
    refused = pa.Table.from_batches([run]).take(pa.array([refusal.row for refusal in rows.refusals]))
    for name in ("rule", "severity", "message"):
        refused = refused.append_column(
            name, pa.array([getattr(refusal, name) for refusal in rows.refusals], pa.string())
        )
    ordinal = run.column("ordinal")[0].as_py()
    context.quarantine.write_table(f"{ordinal:020d}.parquet", refused.select(QUARANTINE.names).cast(QUARANTINE))
