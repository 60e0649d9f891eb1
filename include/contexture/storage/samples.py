"""A few of what broke each rule of a run: identities and reasons, for people; never content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow.parquet as pq
from pydantic import ValidationError

from contexture.storage.layout import PublicationFolder
from contexture.storage.manifest import Document
from contexture.storage.retrying import Quarantine
from contexture.storage.storage import Storage

SAMPLES: Final = 5
"""Of each rule."""

_ROWS: Final = 10_000
_IDENTITY: Final = ("path", "id", "type")


class Sample(Document):
    """Who broke a rule, and how; `message` is empty where only the rule was noted."""

    identity: str
    message: str = ""


class Samples(Document):
    """What the report of one run keeps.

    Attributes:
        rules: by rule; of what rules refused, and of what they warned of.
        expectations: by name, a few of the rows that broke each.
    """

    outbox: str
    rules: Mapping[str, tuple[Sample, ...]]
    expectations: Mapping[str, tuple[str, ...]] = {}


def kept_samples(storage: Storage, publication: str, outbox: str) -> Samples | None:
    """What the report of an outbox keeps; None when it is of an earlier version, or gone."""
    try:
        return Samples.model_validate_json(storage.read(PublicationFolder(publication).samples(outbox)))
    except (FileNotFoundError, ValidationError):
        return None


def quarantine_samples(
    storage: Storage, publication: str, outbox: str, counts: Mapping[str, int]
) -> dict[str, tuple[Sample, ...]]:
    """The first few of what each rule refused; no more is read than it takes to find them.

    Args:
        storage: the home.
        publication: whose.
        outbox: of which run.
        counts: how many each rule refused.

    Raises:
        RetriableError: the storage did not answer.
    """
    found: dict[str, list[Sample]] = {rule: [] for rule in counts}
    quarantine = Quarantine(storage, PublicationFolder(publication), outbox)
    for path in quarantine.files if counts else ():
        if all(len(samples) >= min(SAMPLES, counts[rule]) for rule, samples in found.items()):
            break
        _collect(storage, path, found)
    return {rule: tuple(samples) for rule, samples in found.items() if samples}


def identity_text(path: str | None, id_: str | None, type_: str | None) -> str:
    """An entity as people name it; a structure has no path, but a URN for its id."""
    parts = (id_, type_) if path == "" else (path, id_, type_)
    return " ".join(part or "?" for part in parts)


def _collect(storage: Storage, path: str, found: Mapping[str, list[Sample]]) -> None:
    columns = [*_IDENTITY, "rule", "message"]
    with storage.translating(path), storage.filesystem.open_input_file(storage.path(path)) as file:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=_ROWS, columns=columns):
            for row in batch.to_pylist():
                _add(found.get(row["rule"]), row)


def _add(samples: list[Sample] | None, row: Mapping[str, Any]) -> None:
    if samples is not None and len(samples) < SAMPLES:
        samples.append(Sample(identity=identity_text(*(row[name] for name in _IDENTITY)), message=row["message"]))
