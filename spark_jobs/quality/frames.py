"""Accepted events as the checkpoint reads them: in memory if they are few, in Spark if they are many.

A few thousand rows cost Spark a second for every question (plans, code, tasks), and pandas some milliseconds. What
people wrote themselves is always judged in Spark, for their conditions are SQL.
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
"""As many narrow rows are some 100 MB in pandas."""

AGE = AGE_COLUMN
MODIFIED = "modified_at"


@dataclass(frozen=True, slots=True)
class AcceptedFrames:
    """One row for each entity or structure that was accepted.

    Entities have the columns `ENTITY_COLUMNS` of `quality_combinations` and two for each judged attribute, structures
    those of `STRUCTURE_COLUMNS` there, attributes of entities those of `ATTRIBUTE_COLUMNS`.

    Attributes:
        in_spark: makes the frame of Spark; called at most once.
        in_memory: makes the same rows as an Arrow table; None: they are too many.
    """

    in_spark: Callable[[], DataFrame]
    in_memory: Callable[[], Any] | None = None

    def spark(self, reference_time: datetime) -> DataFrame:
        """The frame in Spark, cached, with `seconds_ahead`: how far ahead of the reference a modification lies.

        Where there are no times of modification, there is no such column.
        """
        from pyspark.sql import functions

        frame = self.in_spark()
        if MODIFIED not in frame.columns:
            return frame.cache()
        # A number, because timestamps in arguments become texts in GX and are read in the session's time zone.
        ahead = functions.col(MODIFIED).cast("double") - functions.lit(reference_time.timestamp())
        return frame.withColumn(AGE, ahead).cache()

    def memory(self, reference_time: datetime) -> pd.DataFrame | None:
        """The same as a pandas frame, or None where the rows are too many."""
        if self.in_memory is None:
            return None
        frame: pd.DataFrame = self.in_memory().to_pandas()
        if MODIFIED in frame:
            frame[AGE] = (frame[MODIFIED] - reference_time).dt.total_seconds()
        return frame
