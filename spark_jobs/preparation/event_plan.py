"""Which events are sent, and in which batch and sub-batch: what planning tells the tasks that assemble the shards."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.storage.home import Storage

_FILE = "events.npy"


@dataclass(frozen=True, slots=True, eq=False)
class EventPlan:
    """The events that are sent, in order.

    Attributes:
        events: their numbers, rising.
        batch: the batch of each, counted from 0.
        sub_batch: the sub-batch of each within its batch, counted from 0.
        final: whether the target has the content of the event in the end, so that state does.
    """

    events: Any
    batch: Any
    sub_batch: Any
    final: Any

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return int(self.batch[-1]) + 1 if len(self.batch) else 0

    def placed(self, rendered: Any) -> Any:
        """The rendered events that are sent, with `batch`, `sub_batch` and `final`; the others are left out."""
        numbers = rendered.column("event").to_numpy()
        places = np.searchsorted(self.events, numbers)
        places[places == len(self.events)] = 0
        kept = self.events[places] == numbers if len(self.events) else np.zeros(len(numbers), dtype=bool)
        if not kept.all():
            rendered, places = rendered.filter(pa.array(kept)), places[kept]
        placed = rendered.append_column("batch", pa.array(self.batch[places]))
        placed = placed.append_column("sub_batch", pa.array(self.sub_batch[places]))
        return placed.append_column("final", pa.array(self.final[places].astype(bool)))

    def save(self, storage: Storage, work: str) -> None:
        """Writes the plan to the work folder."""
        content = io.BytesIO()
        np.save(content, np.stack([self.events, self.batch, self.sub_batch, self.final]).astype(np.int64))
        storage.write(f"{work}/{_FILE}", content.getvalue())

    @classmethod
    def load(cls, storage: Storage, work: str) -> EventPlan:
        """The plan that lies in the work folder."""
        return cls(*np.load(io.BytesIO(storage.read(f"{work}/{_FILE}"))))
