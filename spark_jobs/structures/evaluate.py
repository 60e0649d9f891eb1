"""The evaluation of landed structures, which splits, checks, converts and hashes them in one pass over their bodies.

`evaluation(preparation, units)` returns the function for `mapInArrow` over numbers of units. A task reads its units
itself. For each it writes a file of narrow rows, and a file of the bodies that may be sent.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa

from contexture.errors import RejectedError
from contexture.events.rules import RuleFindings, Violation
from contexture.publications import SdmxPublication
from contexture.records.changes import ChangeKind
from contexture.records.messages.envelopes import structure_envelope
from contexture.sources.sdmx import Artefact, Format, StructureMessageError, UnsplittableFormatError, Urn, split
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions
from contexture.sources.sdmx.rules.checks import check, check_alone, unreadable
from contexture.sources.sdmx.rules.consistency import is_final
from contexture.storage.folder import StoredFolder
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.parquet_rows import Unit, batches_of
from spark_jobs.structures.bodies import BodyFile, BodyStream, body_file
from spark_jobs.structures.rows import UNPLANNED

LOSS = "transcoding-loss"
_SCHEMA = "schema"
_DEFAULT = Format.SDMX_ML_2_1.media_type


@dataclass(frozen=True, slots=True)
class ConvertedStructure:
    """A converted structure, as it will be sent.

    Attributes:
        message: with this structure only.
        media_type, content_hash: of the message.
        lost: what the conversion lost, as text; None: nothing.
        violations: of the rules about converted structures.
    """

    message: bytes = field(repr=False)
    media_type: str
    content_hash: bytes
    lost: str | None
    violations: tuple[Violation, ...]


class Conversion:
    """The conversion of structures to one format.

    Args:
        target: the format.
        options: of the publication's rules.
    """

    def __init__(self, target: Format, options: StructureRuleOptions) -> None:
        self._target = target
        self._options = options
        # The library that converts is checked by the schema; the other rules concern the registry.
        severities = {rule: severity for rule, severity in options.severities.items() if rule == _SCHEMA}
        self._of_result = replace(options, severities=severities)

    def is_done(self, artefact: Artefact) -> bool:
        """Returns whether a structure has the format already."""
        return artefact.format is self._target

    def convert(self, artefact: Artefact, moment: datetime) -> ConvertedStructure:
        """Converts a structure to the format.

        Args:
            artefact: as the registry wrote it.
            moment: when it was read.

        Raises:
            NotTranscodableError: the structure cannot be converted (a `RejectedError`).
        """
        # Imported here, because it loads an HTTP client that runs without conversions do not need.
        from contexture.sources.sdmx.transcoding.transcoder import transcode

        result = transcode(artefact, self._target, moment)
        found = RuleFindings(self._options.severities)
        if result.losses:
            found.add(LOSS, f"converted from {result.source}, without {result.losses}")
        return ConvertedStructure(
            message=result.artefact.message(),
            media_type=self._target.media_type,
            content_hash=result.artefact.content_hash,
            lost=str(result.losses) or None,
            violations=(*check(result.artefact, self._of_result), *found.violations),
        )


def find_conversion(publication: SdmxPublication, options: StructureRuleOptions) -> Conversion | None:
    """Returns the conversion that a publication allows; None: it allows none."""
    if not publication.message.allow_lossy:
        return None
    from contexture.sources.sdmx.transcoding.transcoder import target_format

    target = target_format(publication.source.media_type or _DEFAULT)
    return Conversion(target, options) if target else None


INEXPRESSIBLE = Violation(
    "inexpressible", "warning", "the registry has it, and cannot write it in the format of source.media_type"
)
URN_MISSING = Violation("urn-missing", "error", "it is not known which structure it is")
_LONGEST_REASON = 200
_EMPTY = Violation("unreadable", "error", "the row has no body")
_VERDICTS = {"delete": ChangeKind.DELETE, "present": ChangeKind.PRESENT, "inexpressible": ChangeKind.PRESENT}


@dataclass(frozen=True, slots=True)
class LandedStructure:
    """A landing row; `body` is a buffer, or None if the row has none."""

    ordinal: int
    operation: str
    scope: str
    id: str | None
    type: str | None
    version: str | None
    media_type: str | None
    source_transaction: int | None
    modified_at: datetime | None
    received_at: datetime
    body: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class EvaluatedStructure:
    """The evaluation of one row.

    Attributes:
        columns: its columns in EVALUATED.
        errors: violations that go to quarantine with the row.
        body: the converted body; None: the landed body is sent.
    """

    columns: dict[str, Any]
    errors: tuple[Violation, ...]
    body: Any = field(default=None, repr=False)

    @property
    def is_sendable(self) -> bool:
        """Whether the body may be sent."""
        return bool(self.columns["verdict"] == ChangeKind.SEND)


class StructureEvaluator:
    """The evaluator of landed structures by the rules of one publication."""

    def __init__(self, publication: SdmxPublication) -> None:
        self._options = StructureRuleOptions.for_publication(publication)
        self._envelope = structure_envelope(publication)
        self._conversion = find_conversion(publication, self._options)

    def evaluate(self, row: LandedStructure) -> EvaluatedStructure:
        """Evaluates one row."""
        if row.operation != "upsert":
            errors = (INEXPRESSIBLE,) if row.operation == "inexpressible" else ()
            return EvaluatedStructure(_columns(row, _VERDICTS[row.operation]) | _identity_columns(row), errors)
        if row.body is None:
            return _refuse(row, [_EMPTY])
        try:
            with BodyStream(row.body) as stream:
                artefacts = list(islice(split(stream, row.media_type), 2))
        except UnsplittableFormatError:
            return self._accept_unsplit(row)
        except StructureMessageError as error:
            return _refuse(row, unreadable(error))
        alone = check_alone(artefacts)
        if alone:
            return _refuse(row, alone)
        evaluated = self._evaluate_artefact(row, artefacts[0])
        if self._conversion is None or not evaluated.is_sendable or self._conversion.is_done(artefacts[0]):
            return evaluated
        return self._convert(row, artefacts[0], evaluated, self._conversion)

    def _convert(
        self, row: LandedStructure, artefact: Artefact, evaluated: EvaluatedStructure, conversion: Conversion
    ) -> EvaluatedStructure:
        """Converts a structure that the registry does not write in the wanted format."""
        try:
            converted = conversion.convert(artefact, row.received_at)
        except RejectedError as error:
            marked = {"operation": "inexpressible", "verdict": ChangeKind.PRESENT.value}
            reason = Violation("inexpressible", "warning", error.message)
            return EvaluatedStructure(_columns(row, ChangeKind.PRESENT) | _identity_columns(row) | marked, (reason,))
        errors = tuple(each for each in converted.violations if each.severity == "error")
        warnings = [each.rule for each in converted.violations if each.severity == "warning"]
        columns = {
            "verdict": (ChangeKind.QUARANTINED if errors else ChangeKind.SEND).value,
            "size": len(converted.message),
            "content_hash": converted.content_hash,
            "media_type": converted.media_type,
            "rules": _join_rules([each.rule for each in errors]),
            "warnings": _join_rules([*filter(None, (evaluated.columns["warnings"] or "").split(",")), *warnings]),
            "transcoded_from": artefact.media_type,
            "lost": converted.lost,
        }
        return EvaluatedStructure(evaluated.columns | columns, errors, pa.py_buffer(converted.message))

    def _accept_unsplit(self, row: LandedStructure) -> EvaluatedStructure:
        """Accepts a reply in a format that cannot be split, because the registry was queried for one structure."""
        if row.id is None:
            return _refuse(row, [URN_MISSING])
        violation = self._envelope_violation(row.id, row.media_type)
        if violation is not None:
            return _refuse(row, [violation])
        content = {"content_hash": sha256(row.body).digest(), "size": len(row.body)}
        return EvaluatedStructure(_columns(row, ChangeKind.SEND) | _identity_columns(row) | content, ())

    def _evaluate_artefact(self, row: LandedStructure, artefact: Artefact) -> EvaluatedStructure:
        violations = check(artefact, self._options)
        urn = row.id or artefact.urn
        if urn is None and not any(each.severity == "error" for each in violations):
            violations = [*violations, URN_MISSING]
        violation = None if urn is None else self._envelope_violation(urn, row.media_type)
        if violation is not None:
            violations = [*violations, violation]
        errors = tuple(each for each in violations if each.severity == "error")
        warnings = [each.rule for each in violations if each.severity == "warning"]
        columns = {
            "urn": urn,
            "declared_urn": artefact.declared_urn,
            "kind": artefact.kind,
            "agency": artefact.agency,
            "id": artefact.id,
            "version": artefact.version,
            "size": len(row.body),
            "content_hash": artefact.content_hash,
            "references": artefact.references,
            "reference_count": len(artefact.references),
            "is_final": is_final(artefact),
            "rules": _join_rules([each.rule for each in errors]),
            "warnings": _join_rules(warnings),
        }
        return EvaluatedStructure(
            _columns(row, ChangeKind.QUARANTINED if errors else ChangeKind.SEND) | columns, errors
        )

    def _envelope_violation(self, urn: str, media_type: str | None) -> Violation | None:
        """Returns why the publication's envelope cannot carry a structure; None: it can, or there is no envelope."""
        if self._envelope is None:
            return None
        try:
            self._envelope.check(urn, media_type)
        except RejectedError as error:
            return Violation("identity", "error", error.message[:_LONGEST_REASON])
        return None


def _refuse(row: LandedStructure, errors: list[Violation]) -> EvaluatedStructure:
    rules = {"rules": _join_rules([each.rule for each in errors]), "size": len(row.body) if row.body is not None else 0}
    return EvaluatedStructure(_columns(row, ChangeKind.QUARANTINED) | _identity_columns(row) | rules, tuple(errors))


def _columns(row: LandedStructure, verdict: ChangeKind) -> dict[str, Any]:
    return {
        "event": row.ordinal,
        "operation": row.operation,
        "verdict": verdict.value,
        "source_transaction": row.source_transaction,
        "size": 0,
        "references": (),
        "reference_count": 0,
        "is_final": False,
        "transcoded_from": None,
        "lost": None,
        "media_type": row.media_type,
        "modified_at": row.modified_at,
        "received_at": row.received_at,
    }


def _identity_columns(row: LandedStructure) -> dict[str, Any]:
    """Returns the identity of a structure as the landing row has it."""
    try:
        urn = Urn.parse(row.id or "")
    except ValueError:
        return {"urn": row.id, "kind": row.type, "agency": row.scope, "id": None, "version": row.version}
    return {"urn": row.id, "kind": urn.class_name, "agency": urn.agency, "id": urn.id, "version": urn.version}


def _join_rules(rules: list[str]) -> str | None:
    return ",".join(dict.fromkeys(rules)) or None


_LARGE_BYTES = 1 << 20

EVENTS = "events long"
"""The schema of what a task returns to Spark for each unit: the number of its events."""

_NARROW = (
    *("ordinal", "operation", "id", "media_type", "modified_at", "source_transaction", "received_at"),
    *("scope", "type", "version"),
)


def unplanned_folder(work: StoredFolder) -> StoredFolder:
    """Returns the folder of the rows before planning (UNPLANNED)."""
    return work.folder("looked_at")


def evaluation(preparation: StageContext, units: Sequence[Unit]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function that evaluates units by their numbers, and yields a row of EVENTS for each."""

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        evaluator = StructureEvaluator(SdmxPublication.of(preparation.publication))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                events = _evaluate(preparation, evaluator, units[number], number)
                yield pa.record_batch([pa.array([events], pa.int64())], names=["events"])

    return evaluate


def _evaluate(preparation: StageContext, evaluator: StructureEvaluator, unit: Unit, number: int) -> int:
    landing = preparation.landing
    with body_file(preparation.work, number) as bodies:
        rows = [
            _row(evaluator, row, bodies, number) for batch in batches_of(landing, unit) for row in _structures(batch)
        ]
    if sum(row["size"] for row in rows) > _LARGE_BYTES:
        # The parsers of bodies refer to themselves in cycles: these are few objects, so Python does not collect them
        # soon, but much memory.
        gc.collect()
    table = pa.Table.from_pylist(rows, schema=UNPLANNED)
    unplanned_folder(preparation.work).write_table(f"{number:06d}.parquet", table)
    return len(rows)


def _structures(batch: Any) -> Iterator[LandedStructure]:
    for row, body in zip(batch.select(_NARROW).to_pylist(), _bodies(batch.column("body")), strict=True):
        yield LandedStructure(**row, body=body)


def _bodies(column: Any) -> Iterator[Any]:
    """Returns views of the bodies, because Arrow's own access to one value copies it."""
    if not len(column):
        return
    _, offsets, content = column.buffers()
    places = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
    for is_valid, (start, end) in zip(column.is_valid().to_pylist(), pairwise(places), strict=True):
        yield content.slice(start, end - start) if is_valid else None


def _row(evaluator: StructureEvaluator, row: LandedStructure, bodies: BodyFile, unit: int) -> dict[str, Any]:
    evaluated = evaluator.evaluate(row)
    body = row.body if evaluated.body is None else evaluated.body
    position = bodies.append(body) if evaluated.is_sendable and body is not None else None
    return {
        **evaluated.columns,
        "unit": unit,
        "offset": position.offset if position else None,
        "length": position.length if position else None,
        "errors": [
            {"rule": each.rule, "severity": each.severity, "message": each.message} for each in evaluated.errors
        ],
    }
