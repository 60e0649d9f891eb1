"""Records that no broker would take in one request.

A broker closes the connection on a request above its `socket.request.max.bytes`, and a client can only try again: the
send would end as if the brokers were away. So a record that could be too large is compressed and compared before.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import RejectedError
from contexture.kafka.refused import record_name
from contexture.kafka.topic_admin import TopicAdmin

if TYPE_CHECKING:
    from contexture.kafka.patience import Patience
    from contexture.kafka.settings import ClientSettings

_NAME: Final = "socket.request.max.bytes"
# Half of Kafka's default (100 MiB): brokers are not asked because of anything smaller.
_ASKED_ABOVE_BYTES: Final = 52_428_800
# What stands around a record in a request.
_AROUND_BYTES: Final = 4_096


class RequestLimit:
    """The brokers' limit of a request, asked for when the first large record comes.

    Args:
        settings: the connection.
        patience: how long brokers are waited for.
        asked_above_bytes: brokers are not asked because of smaller records.
    """

    def __init__(
        self, settings: ClientSettings, patience: Patience, *, asked_above_bytes: int = _ASKED_ABOVE_BYTES
    ) -> None:
        self._settings = settings
        self._patience = patience
        self._asked_above_bytes = asked_above_bytes

    @cached_property
    def bytes(self) -> int | None:
        """The lowest limit of the brokers; None when this user may not know."""
        return TopicAdmin(self._settings, self._patience).lowest_of_brokers(_NAME)

    def check(self, rows: pa.RecordBatch) -> None:
        """Sees that each record fits into a request, compressed as the client will compress it.

        Raises:
            RejectedError: one does not (`.context["status"]` is 2: it did not leave).
        """
        lengths = pc.binary_length(cast("pa.BinaryArray", rows.column("value")))
        if (pc.max(lengths).as_py() or 0) <= self._asked_above_bytes or self.bytes is None:
            return
        room = self.bytes - _AROUND_BYTES
        for index in pc.indices_nonzero(pc.greater(lengths.fill_null(0), room)).to_pylist():
            size = self._compressed(rows.column("value")[index])
            if size > room:
                raise _too_large(rows, index, size, self.bytes)

    def _compressed(self, value: Any) -> int:
        codec = str(self._settings.producer()["compression.type"])
        data = value.as_buffer()
        if codec == "none":
            return int(data.size)
        return int(pa.compress(data, codec=codec).size)


def _too_large(rows: pa.RecordBatch, index: int, size: int, limit: int) -> RejectedError:
    topic, key = str(rows.column("topic")[index].as_py()), rows.column("key")[index].as_py()
    return RejectedError(
        f"{record_name(key)} has {size} bytes compressed, and the brokers take {limit} in a request ({_NAME})",
        next_step=f"raise {_NAME} of the brokers, choose a compression.type that makes it smaller, or leave this "
        "object out",
        topic=topic,
        status=2,
        error="MSG_SIZE_TOO_LARGE",
    )
