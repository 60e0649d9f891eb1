"""The accepted events as the checkpoint reads them: in memory if they are few, in Spark if they are many.

On a few thousand rows Spark takes a second for every query (plans, code, tasks), and pandas some milliseconds. The
author's own expectations are always judged in Spark, because their conditions are SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from contexture.publications.checks.quality import AGE_COLUMN

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

ROWS_IN_MEMORY = 100_000
"""This many narrow rows are about 100 MB in pandas."""

AGE = AGE_COLUMN
MODIFIED = "modified_at"


@dataclass(frozen=True, slots=True)
class AcceptedFrames:
    """The accepted entities, structures or attributes, one row each.

    The columns are those of `contexture.publications.checks.quality`: entities have `ENTITY_COLUMNS` and two for each
    judged attribute, structures have `STRUCTURE_COLUMNS`, and attributes of entities have `ATTRIBUTE_COLUMNS`.

    Attributes:
        in_spark: makes the Spark frame; called at most once.
        in_memory: makes the same rows as an Arrow table; None if they are too many.
    """

    in_spark: Callable[[], DataFrame]
    in_memory: Callable[[], Any] | None = None

    def spark(self, reference_time: datetime) -> DataFrame:
        """Returns the cached Spark frame with `seconds_ahead`, the seconds of a modification after the reference time.

        Without times of modification there is no such column.
        """
        from pyspark.sql import functions

        frame = self.in_spark()
        if MODIFIED not in frame.columns:
            return frame.cache()
        # A number, because GX converts timestamps in arguments to text, which is read in the session's time zone.
        ahead = functions.col(MODIFIED).cast("double") - functions.lit(reference_time.timestamp())
        return frame.withColumn(AGE, ahead).cache()

    def memory(self, reference_time: datetime) -> pd.DataFrame | None:
        """Returns the same as a pandas frame, or None if the rows are too many."""
        if self.in_memory is None:
            return None
        frame: pd.DataFrame = self.in_memory().to_pandas()
        if MODIFIED in frame:
            frame[AGE] = (frame[MODIFIED] - reference_time).dt.total_seconds()
        return frame
