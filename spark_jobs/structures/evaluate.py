"""Evaluating the structures of a landing: split, checked, converted, hashed; the one pass over their bodies.

`evaluation(preparation, units)` gives the function for `mapInArrow` over numbers of units. A task reads its units
itself, and writes for each a file of narrow rows and one of the bodies that may be sent.
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
from spark_jobs.structures.assemble import BodyFile, BodyStream, body_file
from spark_jobs.structures.rows import LOOKED_AT

LOSS = "transcoding-loss"
_SCHEMA = "schema"
_DEFAULT = Format.SDMX_ML_2_1.media_type


@dataclass(frozen=True, slots=True)
class Converted:
    """A structure as it will be sent.

    Attributes:
        message: with the structure alone.
        media_type, content_hash: of that.
        lost: what it no longer says, as text; None: nothing.
        violations: of the rules about converted structures.
    """

    message: bytes = field(repr=False)
    media_type: str
    content_hash: bytes
    lost: str | None
    violations: tuple[Violation, ...]


class Conversion:
    """Converts into one form.

    Args:
        target: the form.
        options: what the publication wants of rules.
    """

    def __init__(self, target: Format, options: StructureRuleOptions) -> None:
        self._target = target
        self._options = options
        # What a library writes is held to the schema; the rest was the registry's.
        severities = {rule: severity for rule, severity in options.severities.items() if rule == _SCHEMA}
        self._of_result = replace(options, severities=severities)

    def is_done(self, artefact: Artefact) -> bool:
        """Whether a structure has the form already."""
        return artefact.format is self._target

    def of(self, artefact: Artefact, moment: datetime) -> Converted:
        """A structure in the form.

        Args:
            artefact: as the registry wrote it.
            moment: when it was read.

        Raises:
            NotTranscodableError: it can't be converted (a `RejectedError`).
        """
        # Anyone who converts nothing needs neither this nor the HTTP client that it comes with.
        from contexture.sources.sdmx.transcoding.transcoder import transcode

        result = transcode(artefact, self._target, moment)
        found = RuleFindings(self._options.severities)
        if result.losses:
            found.add(LOSS, f"converted from {result.source}, without {result.losses}")
        return Converted(
            message=result.artefact.message(),
            media_type=self._target.media_type,
            content_hash=result.artefact.content_hash,
            lost=str(result.losses) or None,
            violations=(*check(result.artefact, self._of_result), *found.violations),
        )


def conversion_of(publication: SdmxPublication, options: StructureRuleOptions) -> Conversion | None:
    """The conversion that a publication allows; None: it allows none."""
    if not publication.message.allow_lossy:
        return None
    from contexture.sources.sdmx.transcoding.transcoder import target_format

    target = target_format(publication.source.media_type or _DEFAULT)
    return Conversion(target, options) if target else None


INEXPRESSIBLE = Violation(
    "inexpressible", "warning", "the registry holds it and can't write it in the form of source.media_type"
)
URN_MISSING = Violation("urn-missing", "error", "nothing says which structure it is")
_LONGEST_REASON = 200
_EMPTY = Violation("unreadable", "error", "the row has no body")
_VERDICTS = {"delete": ChangeKind.DELETE, "present": ChangeKind.PRESENT, "inexpressible": ChangeKind.PRESENT}


@dataclass(frozen=True, slots=True)
class LandedStructure:
    """One landing row; `body` is a buffer, None where the row has none."""

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
class Seen:
    """What was seen of a row.

    Attributes:
        columns: its columns in EVALUATED.
        errors: what goes to quarantine with it.
        body: what is sent in place of what was landed; None: that is sent.
    """

    columns: dict[str, Any]
    errors: tuple[Violation, ...]
    body: Any = field(default=None, repr=False)

    @property
    def is_good(self) -> bool:
        """Whether its body may be sent."""
        return bool(self.columns["verdict"] == ChangeKind.SEND)


class StructureEvaluator:
    """Looks at landed structures under the rules of one publication."""

    def __init__(self, publication: SdmxPublication) -> None:
        self._options = StructureRuleOptions.for_publication(publication)
        self._envelope = structure_envelope(publication)
        self._conversion = conversion_of(publication, self._options)

    def at(self, row: LandedStructure) -> Seen:
        """What one row is."""
        if row.operation != "upsert":
            errors = (INEXPRESSIBLE,) if row.operation == "inexpressible" else ()
            return Seen(_columns(row, _VERDICTS[row.operation]) | _named(row), errors)
        if row.body is None:
            return _refused(row, [_EMPTY])
        try:
            with BodyStream(row.body) as stream:
                artefacts = list(islice(split(stream, row.media_type), 2))
        except UnsplittableFormatError:
            return self._whole(row)
        except StructureMessageError as error:
            return _refused(row, unreadable(error))
        alone = check_alone(artefacts)
        if alone:
            return _refused(row, alone)
        seen = self._artefact(row, artefacts[0])
        if self._conversion is None or not seen.is_good or self._conversion.is_done(artefacts[0]):
            return seen
        return self._converted(row, artefacts[0], seen, self._conversion)

    def _converted(self, row: LandedStructure, artefact: Artefact, seen: Seen, conversion: Conversion) -> Seen:
        """A structure that the registry doesn't write in the form that is wanted."""
        try:
            converted = conversion.of(artefact, row.received_at)
        except RejectedError as error:
            marked = {"operation": "inexpressible", "verdict": ChangeKind.PRESENT.value}
            reason = Violation("inexpressible", "warning", error.message)
            return Seen(_columns(row, ChangeKind.PRESENT) | _named(row) | marked, (reason,))
        errors = tuple(each for each in converted.violations if each.severity == "error")
        warnings = [each.rule for each in converted.violations if each.severity == "warning"]
        columns = {
            "verdict": (ChangeKind.QUARANTINED if errors else ChangeKind.SEND).value,
            "size": len(converted.message),
            "content_hash": converted.content_hash,
            "media_type": converted.media_type,
            "rules": _names([each.rule for each in errors]),
            "warnings": _names([*filter(None, (seen.columns["warnings"] or "").split(",")), *warnings]),
            "transcoded_from": artefact.media_type,
            "lost": converted.lost,
        }
        return Seen(seen.columns | columns, errors, pa.py_buffer(converted.message))

    def _whole(self, row: LandedStructure) -> Seen:
        """A reply in a form that can't be taken apart: the registry was asked for one structure."""
        if row.id is None:
            return _refused(row, [URN_MISSING])
        violation = self._envelope_violation(row.id, row.media_type)
        if violation is not None:
            return _refused(row, [violation])
        content = {"content_hash": sha256(row.body).digest(), "size": len(row.body)}
        return Seen(_columns(row, ChangeKind.SEND) | _named(row) | content, ())

    def _artefact(self, row: LandedStructure, artefact: Artefact) -> Seen:
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
            "rules": _names([each.rule for each in errors]),
            "warnings": _names(warnings),
        }
        return Seen(_columns(row, ChangeKind.QUARANTINED if errors else ChangeKind.SEND) | columns, errors)

    def _envelope_violation(self, urn: str, media_type: str | None) -> Violation | None:
        """Why the publication's envelope can't show a structure; None when it can, or there is no envelope."""
        if self._envelope is None:
            return None
        try:
            self._envelope.check(urn, media_type)
        except RejectedError as error:
            return Violation("identity", "error", error.message[:_LONGEST_REASON])
        return None


def _refused(row: LandedStructure, errors: list[Violation]) -> Seen:
    rules = {"rules": _names([each.rule for each in errors]), "size": len(row.body) if row.body is not None else 0}
    return Seen(_columns(row, ChangeKind.QUARANTINED) | _named(row) | rules, tuple(errors))


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


def _named(row: LandedStructure) -> dict[str, Any]:
    """What the row says itself about which structure it is."""
    try:
        urn = Urn.parse(row.id or "")
    except ValueError:
        return {"urn": row.id, "kind": row.type, "agency": row.scope, "id": None, "version": row.version}
    return {"urn": row.id, "kind": urn.class_name, "agency": urn.agency, "id": urn.id, "version": urn.version}


def _names(rules: list[str]) -> str | None:
    return ",".join(dict.fromkeys(rules)) or None


_LARGE_BYTES = 1 << 20

EVENTS = "events long"
"""What Spark gets of each unit: how many events it was."""

_NARROW = (
    *("ordinal", "operation", "id", "media_type", "modified_at", "source_transaction", "received_at"),
    *("scope", "type", "version"),
)


def looked_at_folder(work: StoredFolder) -> StoredFolder:
    """Where the narrow rows of all units lie."""
    return work.folder("looked_at")


def evaluation(preparation: StageContext, units: Sequence[Unit]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that looks at units by their numbers; yields a row of EVENTS for each."""

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        look = StructureEvaluator(SdmxPublication.of(preparation.publication))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                events = _evaluate(preparation, look, units[number], number)
                yield pa.record_batch([pa.array([events], pa.int64())], names=["events"])

    return evaluate


def _evaluate(preparation: StageContext, look: StructureEvaluator, unit: Unit, number: int) -> int:
    landing = preparation.landing
    with body_file(preparation.work, number) as bodies:
        rows = [_row(look, row, bodies, number) for batch in batches_of(landing, unit) for row in _structures(batch)]
    if sum(row["size"] for row in rows) > _LARGE_BYTES:
        # What took bodies apart refers to itself in circles: few objects for Python, which waits for many, and much
        # memory.
        gc.collect()
    table = pa.Table.from_pylist(rows, schema=LOOKED_AT)
    looked_at_folder(preparation.work).write_table(f"{number:06d}.parquet", table)
    return len(rows)


def _structures(batch: Any) -> Iterator[LandedStructure]:
    for row, body in zip(batch.select(_NARROW).to_pylist(), _bodies(batch.column("body")), strict=True):
        yield LandedStructure(**row, body=body)


def _bodies(column: Any) -> Iterator[Any]:
    """Views of the bodies: Arrow's own way to one value copies it."""
    if not len(column):
        return
    _, offsets, content = column.buffers()
    places = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
    for is_valid, (start, end) in zip(column.is_valid().to_pylist(), pairwise(places), strict=True):
        yield content.slice(start, end - start) if is_valid else None


def _row(look: StructureEvaluator, row: LandedStructure, bodies: BodyFile, unit: int) -> dict[str, Any]:
    seen = look.at(row)
    body = row.body if seen.body is None else seen.body
    place = bodies.put(body) if seen.is_good and body is not None else None
    return {
        **seen.columns,
        "unit": unit,
        "offset": place.offset if place else None,
        "length": place.length if place else None,
        "errors": [{"rule": each.rule, "severity": each.severity, "message": each.message} for each in seen.errors],
    }
