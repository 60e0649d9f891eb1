"""The accepted entities, as the checkpoint reads them: in memory where they are few, in Spark where they are many.

A few thousand rows cost Spark a second for every question (plans, code, tasks), and pandas some milliseconds. What
people wrote themselves is always judged in Spark, for their conditions are SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

ROWS_IN_MEMORY = 100_000
"""As many narrow rows are some 100 MB in pandas."""

AGE = "seconds_ahead"


@dataclass(frozen=True, slots=True)
class EntityFrames:
    """One row per accepted entity with the columns of `columns.FIXED` and two for each judged attribute.

    Attributes:
        in_spark: makes the frame of Spark; called at most once.
        in_memory: makes the same rows as an Arrow table; None: they are too many.
    """

    in_spark: Callable[[], DataFrame]
    in_memory: Callable[[], Any] | None = None

    def spark(self, reference_time: datetime) -> DataFrame:
        """The frame in Spark, cached, with `seconds_ahead`: how far ahead of the reference a modification lies."""
        from pyspark.sql import functions

        frame = self.in_spark()
        # A number, because timestamps in arguments become texts in GX and are read in the session's time zone.
        ahead = functions.col("modified_at").cast("double") - functions.lit(reference_time.timestamp())
        return frame.withColumn(AGE, ahead).cache()

    def memory(self, reference_time: datetime) -> pd.DataFrame | None:
        """The same as a pandas frame, or None where the rows are too many."""
        if self.in_memory is None:
            return None
        frame: pd.DataFrame = self.in_memory().to_pandas()
        frame[AGE] = (frame["modified_at"] - reference_time).dt.total_seconds()
        return frame
