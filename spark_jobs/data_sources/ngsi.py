"""The data source `ngsi`, by which any Spark job reads a context broker.

    spark.dataSource.register(NgsiDataSource)
    spark.read.format("ngsi").option("url", "http://localhost:1026").option("service", "vehicles").load()

Rows have the landing schema: one per entity, with the broker's own bytes in `body`. The options are the fields of
`WalkSelection`. Secrets are never options, because Spark shows options in plans and logs. For a broker that requires a
secret, set the environment variable CONTEXTURE_SOURCE_CONNECTION (JSON of `BrokerConnection`), or register a source
made by `NgsiDataSource.connected`.

`ngsi_rows` returns the same rows without the planning of a Python data source, which starts two more Python processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from contexture.errors import ConfigurationError, ContextureError, from_dict
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.entity_head import moment
from contexture.storage.schemas import LANDING
from spark_jobs.data_sources.walks import WalkSelection, WalkShare
from spark_jobs.session import CONNECTION_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from contexture.sources.ngsi.broker import Broker, EntityPage
    from spark_jobs.data_sources.walks import Walk

WALK_BITS = 36
"""An ordinal has room for 2 to the power of this many rows of one walk."""

SLICE_BITS = 30
"""An ordinal has room for 2 to the power of this many rows of one slice, and so for 64 slices of a walk."""

MEDIA_TYPE = "application/json"


def landing_rows(page: EntityPage, *, service: str, walk: int, first: int, bodies: bool) -> pa.RecordBatch:
    """Converts one page to a record batch of the landing schema.

    Args:
        walk: the number of the walk.
        first: the number of the first row within the walk.
        bodies: False returns rows with operation `present` and no body.
    """
    rows = len(page.entities)
    start = (walk << WALK_BITS) + first
    columns = {
        "ordinal": range(start, start + rows),
        "operation": ["upsert" if bodies else "present"] * rows,
        "scope": [service] * rows,
        "path": [head.path for head in page.heads],
        "id": [head.id for head in page.heads],
        "type": [head.type for head in page.heads],
        "version": [head.modified for head in page.heads],
        "body": page.entities if bodies else [None] * rows,
        "media_type": [MEDIA_TYPE] * rows,
        "created_at": [moment(head.created) for head in page.heads],
        "modified_at": [moment(head.modified) for head in page.heads],
        "source_transaction": [None] * rows,
        "received_at": [page.received_at] * rows,
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in LANDING], schema=LANDING)


class NgsiDataSource(DataSource):
    """The data source `ngsi`."""

    connection: ClassVar[BrokerConnection | None] = None

    @classmethod
    def name(cls) -> str:
        """Returns the name that `spark.read.format(...)` takes."""
        return "ngsi"

    @classmethod
    def connected(cls, connection: BrokerConnection) -> type[NgsiDataSource]:
        """Returns a source to register in place of this one, which reads this broker and ignores the environment."""
        return type("ConnectedNgsiDataSource", (cls,), {"connection": connection})

    def schema(self) -> StructType:
        """Returns the landing schema."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from contexture.storage.schemas import LANDING

        return from_arrow_schema(LANDING)

    def reader(self, schema: StructType) -> NgsiReader:
        """Returns a reader that carries the connection to the tasks.

        Raises:
            ConfigurationError: an option or the connection is invalid.
        """
        selection = WalkSelection.of(self.options)
        return NgsiReader(selection, self._connection(selection.url))

    def _connection(self, url: str) -> BrokerConnection:
        if url:
            return BrokerConnection(url)
        if self.connection is not None:
            return self.connection
        described = os.environ.get(CONNECTION_VARIABLE)
        if not described:
            raise ConfigurationError(
                "the ngsi source has no context broker",
                next_step=f"set the option url, or set {CONNECTION_VARIABLE} to the JSON of a connection",
            )
        return BrokerConnection.from_json(described)


class NgsiReader(DataSourceReader):
    """A reader of the walks of one selection, in as many tasks as there are readers."""

    def __init__(self, selection: WalkSelection, connection: BrokerConnection) -> None:
        self._selection = selection
        self._connection = connection

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the share of each task, after it has queried the broker for counts and times at which to cut.

        Raises:
            ContextureError: as `Broker.count`.
        """
        from contexture.sources.ngsi.connect import open_broker
        from spark_jobs.data_sources.walks import count_walks, share_walks

        selection, walks = self._selection, self._selection.walks()
        with open_broker(self._connection, selection.service, selection.dialect, budget=selection.budget) as broker:
            return list(share_walks(broker, walks, count_walks(broker, walks), int(selection.parallel_readers)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the rows of one share, a record batch for each page.

        Raises:
            ContextureError: as `Broker.scan`. The class is one of `contexture.errors`, because the driver sees only
                its name, and learns the intent from it.
        """
        assert isinstance(partition, WalkShare)
        try:
            yield from self._read_share(partition)
        except ContextureError as error:
            raise from_dict(error.as_dict()) from None

    def _read_share(self, share: WalkShare) -> Iterator[pa.RecordBatch]:
        from contexture.sources.ngsi.connect import open_broker

        selection, budget = self._selection, self._selection.budget
        ends: dict[int, float] = {}
        with open_broker(self._connection, selection.service, selection.dialect, budget=budget) as broker:
            for walk in share.walks:
                now = budget.clock()
                # Slices of one walk share its time.
                end = ends.setdefault(walk.number, now + float(selection.walk_deadline_seconds))
                yield from self._read_walk(broker, walk, end - now)

    def _read_walk(self, broker: Broker, walk: Walk, seconds: float) -> Iterator[pa.RecordBatch]:
        first = walk.slice << SLICE_BITS
        for page in broker.scan(walk.query, deadline_seconds=seconds):
            yield landing_rows(page, service=broker.service, walk=walk.number, first=first, bodies=walk.bodies)
            first += len(page.entities)


def ngsi_rows(
    spark: SparkSession, selection: WalkSelection, connection: BrokerConnection, shares: Sequence[WalkShare]
) -> DataFrame:
    """Returns the rows of the data source `ngsi`, read by one task for each share.

    The tasks use the same reader. This avoids the planning of a Python data source at the start of the session (3 of
    6.5 s for 1,000 entities, measured).
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from contexture.storage.schemas import LANDING

    reader = NgsiReader(selection, connection)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reader.read(shares[number])

    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(read, from_arrow_schema(LANDING))
