"""Evaluating context entities: parse, rules, identity, comparison with state, rendering.

Works on many rows at a time, so that state is asked once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from contexture.events import ContextIdentity, identity_hash, identity_key
from contexture.records.changes import Verdict
from contexture.records.messages.rendering import type_of
from contexture.records.topics.collisions import Meanings
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity, targets
from contexture.sources.ngsi.notifications import notified_form
from contexture.sources.ngsi.notifications.parsing import parse_notified
from contexture.sources.ngsi.rules import RuleOptions, Violation, check_entity, unreadable
from contexture.sources.ngsi.rules.values import with_numbers
from contexture.storage.state import StateLookup
from spark_jobs.preparation.attribute_rows import attribute_rows, judges_attributes
from spark_jobs.preparation.candidates import Candidate, parts, whole
from spark_jobs.preparation.evaluated import EvaluatedRows, Refusal
from spark_jobs.preparation.holding import Holding
from spark_jobs.preparation.judged import JudgedAttributes
from spark_jobs.preparation.landed_rows import LandedRow, landed_rows
from spark_jobs.preparation.record_maker import RecordMaker
from spark_jobs.preparation.seen_types import SeenTypes
from spark_jobs.preparation.settings import MAXIMUM_PARTS, Preparation, event_number

NUMBER_STRING = "number-string"
ROWS_AT_ONCE = 1000
"""State is asked once for as many rows, whose parsed entities are in memory at once."""


class EntityEvaluator:
    """Evaluates landing rows of one publication against one state."""

    def __init__(self, preparation: Preparation, lookup: StateLookup) -> None:
        publication = preparation.publication
        self._service = publication.source.service
        self._form = publication.source.api
        self._in_turn = preparation.in_turn
        self._by_attribute = preparation.by_attribute
        self._holding = Holding(preparation, lookup)
        self._make = RecordMaker(preparation)
        self._meanings = Meanings(publication.topics)
        self._coerces_numbers = publication.quality.coerce_numbers
        self._judges_targets, self._types = preparation.judges_targets, frozenset(publication.source.types)
        self.seen_types = SeenTypes() if "type-drift" in preparation.judged_rules else None
        self._options = RuleOptions.for_publication(publication, preparation.reference_time)
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
        for candidate, is_held in zip(candidates, self._holding.has(candidates), strict=True):
            verdict = Verdict.UNCHANGED if is_held else Verdict.SEND
            # Where events are told in turn, one that equals state may follow on another that does not.
            if verdict == Verdict.SEND or self._in_turn:
                self._send(rows, candidate, verdict)
            else:
                self._tell(rows, candidate, verdict)

    def _candidates(self, row: LandedRow, rows: EvaluatedRows) -> Iterator[Candidate]:
        if row.operation == "present":
            self._note(rows, row, Verdict.PRESENT, self._shown_identity(row))
            return
        if row.operation == "delete":
            self._note(rows, row, Verdict.DELETE, self._shown_identity(row))
            return
        try:
            row, parsed = self._parsed(row)
        except EntityError as error:
            self._refuse(rows, row, self._shown_identity(row), unreadable(error, self._options))
            return
        parsed, read = with_numbers(parsed) if self._coerces_numbers else parsed, parsed
        violations = check_entity(parsed, self._options)
        errors = [violation for violation in violations if violation.severity == "error"]
        if self._by_attribute and len(parsed.attributes) > MAXIMUM_PARTS:
            errors.append(_too_many(parsed))
        if errors:
            # As it landed: an id that is no text would else name another entity than the one seen.
            self._refuse(rows, row, self._shown_identity(row), errors)
            return
        coerced = [NUMBER_STRING] if parsed is not read and NUMBER_STRING in self._options.severities else []
        warnings = ",".join([*coerced, *(item.rule for item in violations)]) or None
        if self.seen_types is not None:
            self.seen_types.note(parsed)
        if not self._by_attribute:
            yield whole(row, parsed, warnings)
        elif parsed.attributes:
            yield from parts(row, parsed, warnings)
        else:
            # Nothing to send, but it was read whole: what state holds of its attributes is gone.
            self._note(rows, row, Verdict.UNCHANGED, parsed.identity, warnings=warnings)

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
        # A pull takes the time from each page as a whole; here it is known only now, and only if it was asked for.
        return msgspec.structs.replace(row, modified_at=round(parsed.modified_at.timestamp() * 1_000_000)), parsed

    def _send(self, rows: EvaluatedRows, candidate: Candidate, verdict: Verdict) -> None:
        made = self._make(candidate)
        if isinstance(made, Violation):
            rows.refusals.append(Refusal(candidate.row.number, made.rule, made.severity, made.message))
            self._tell(rows, candidate, Verdict.QUARANTINED, rule=made.rule)
            return
        row = candidate.row
        moment = candidate.modified_at if candidate.modified_at is not None else row.received_at
        self._tell(rows, candidate, verdict, topic=made.topics[0], meaning=self._meaning(candidate))
        rows.rendered_rows.append(
            (
                event_number(row.ordinal, candidate.part),
                made.topics,
                made.key,
                made.value,
                moment // 1000,
                candidate.key,
                candidate.identity_hash,
                candidate.entity_hash,
                candidate.content_hash,
                candidate.modified_at,
                candidate.parsed.expires_at,
                *made.headers,
            )
        )

    def _meaning(self, candidate: Candidate) -> int | None:
        identity, attribute = candidate.parsed.identity, candidate.attribute
        kind = type_of(candidate.parsed.entity, attribute) if attribute is not None else ""
        return self._meanings.of_event(identity, attribute, kind)

    def _tell(
        self,
        rows: EvaluatedRows,
        candidate: Candidate,
        verdict: Verdict,
        *,
        topic: str | None = None,
        meaning: int | None = None,
        rule: str | None = None,
    ) -> None:
        row, part, identity = candidate.row, candidate.part, candidate.parsed.identity
        if self._judges_attributes and rule is None:
            rows.attribute_rows += attribute_rows(candidate)
        rows.narrow_rows.append(
            (
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
                *self._judged.of(candidate.parsed),
            )
        )

    def _refuse(self, rows: EvaluatedRows, row: LandedRow, identity: ContextIdentity, errors: list[Violation]) -> None:
        rows.refusals += [Refusal(row.number, item.rule, item.severity, item.message) for item in errors]
        rules = ",".join(dict.fromkeys(item.rule for item in errors))
        self._note(rows, row, Verdict.QUARANTINED, identity, rules=rules)

    def _note(
        self,
        rows: EvaluatedRows,
        row: LandedRow,
        verdict: Verdict,
        identity: ContextIdentity,
        *,
        rules: str | None = None,
        warnings: str | None = None,
    ) -> None:
        """Takes down an entity without content to send: a sighting, a deletion, a refusal, one without attributes."""
        key = identity_key(identity)
        hashed = identity_hash(key)
        event = (event_number(row.ordinal, 0), 0, verdict.value, hashed, hashed, None)
        times = (row.modified_at, row.modified_at, None, row.received_at)
        found = (*times, notified_form(row.media_type) is not None, bool(identity.id), rules, warnings)
        names = (key.decode(), identity.service_path, identity.id, identity.type, None, None, None)
        rows.narrow_rows.append((*event, *found, *names, *self._judged.nothing))

    def _shown_identity(self, row: LandedRow) -> ContextIdentity:
        return ContextIdentity(self._service, row.path, row.id, row.type)


def _too_many(parsed: ParsedEntity) -> Violation:
    message = f"the entity has {len(parsed.attributes)} attributes; dm-by-attribute can send {MAXIMUM_PARTS}"
    return Violation("body", "error", message)
