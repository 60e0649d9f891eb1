"""The quarantine of a run: rejected rows with their rules, and samples of them for people.

Samples hold identities and reasons, never content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.storage.documents import StoredDocument
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder

RETRY_MARKS = pa.schema([pa.field("ordinal", pa.int64(), nullable=False)])
"""Which events of a quarantine a run tries again."""

SAMPLES: Final = 5
"""Of each rule."""

_ROWS: Final = 10_000
_IDENTITY: Final = ("path", "id", "type")


class RuleSample(StoredDocument):
    """The identity of what broke a rule, and how; `message` is empty where only the rule was recorded."""

    identity: str
    message: str = ""


class RuleSamples(StoredDocument):
    """What the report of one run stores.

    Attributes:
        rules: by rule; of what rules refused, and of what they warned of.
        expectations: by name, a few of the rows that broke each.
    """

    outbox: str
    rules: Mapping[str, tuple[RuleSample, ...]]
    expectations: Mapping[str, tuple[str, ...]] = {}


class Quarantine(StoredFolder):
    """What one outbox's run refused.

    Args:
        home: where it is.
        path: of the folder.
        outbox: of which run.
    """

    def __init__(self, home: FileTree, path: str, outbox: str) -> None:
        super().__init__(home, path)
        self.outbox = outbox

    @property
    def parts(self) -> list[str]:
        """The names of its files, in order."""
        return self.files(".parquet")

    def rows(self, part: str, columns: Sequence[str]) -> Any:
        with self.translate_read_errors(part):
            return self.table(part, columns=columns)

    def of_event(self, part: str, ordinal: int) -> Any:
        """Returns the rows of one event in a file, with its content: one for each rule that it breaks."""
        with self.translate_read_errors(part):
            return self.table(part, filters=[("ordinal", "=", ordinal)])

    def retried(self) -> Mapping[int, str]:
        """Returns which events were tried again, by ordinal, and by which outbox."""
        folder, found = self.folder("retried"), dict[int, str]()
        for name in folder.files(".parquet"):
            ordinals = self.rows(f"retried/{name}", RETRY_MARKS.names).column("ordinal").to_pylist()
            found |= dict.fromkeys(ordinals, name.removesuffix(".parquet"))
        return found

    def chosen(self, rules: Sequence[str]) -> Any:
        """Returns the ordinals of the events that were not tried again, rising.

        Args:
            rules: only what one of these rules refused; everything when empty.
        """
        parts = [self.rows(part, ["ordinal", "rule"]) for part in self.parts]
        if rules:
            parts = [part.filter(pc.is_in(part.column("rule"), value_set=pa.array(rules))) for part in parts]
        ordinals = [part.column("ordinal").to_numpy() for part in parts]
        if not ordinals:
            return np.empty(0, np.int64)
        return np.setdiff1d(np.concatenate(ordinals), np.array(list(self.retried()), dtype=np.int64))

    def samples(self, counts: Mapping[str, int]) -> dict[str, tuple[RuleSample, ...]]:
        """Returns the first few of what each rule refused; no more is read than it takes to find them.

        Args:
            counts: how many each rule refused.

        Raises:
            RetriableError: the storage did not respond.
        """
        found: dict[str, list[RuleSample]] = {rule: [] for rule in counts}
        for part in self.parts if counts else ():
            if all(len(samples) >= min(SAMPLES, counts[rule]) for rule, samples in found.items()):
                break
            self._collect(part, found)
        return {rule: tuple(samples) for rule, samples in found.items() if samples}

    def _collect(self, part: str, found: Mapping[str, list[RuleSample]]) -> None:
        columns = [*_IDENTITY, "rule", "message"]
        with self.translate_errors(part), self.open_table(part, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                for row in batch.to_pylist():
                    _add(found.get(row["rule"]), row)


def identity_text(path: str | None, id_: str | None, type_: str | None) -> str:
    """Returns an entity as people name it; a structure has no path, but a URN for its id."""
    parts = (id_, type_) if path == "" else (path, id_, type_)
    return " ".join(part or "?" for part in parts)


def _add(samples: list[RuleSample] | None, row: Mapping[str, Any]) -> None:
    if samples is not None and len(samples) < SAMPLES:
        samples.append(RuleSample(identity=identity_text(*(row[name] for name in _IDENTITY)), message=row["message"]))
