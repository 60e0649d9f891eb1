"""Where a program can put its own encoder, partitioner and delivery callback into a `Publisher`.

    Publisher(settings, names, shards=2, encode=encoded_values(to_avro), delivered=count)

An encoder takes rows of the outbox as they are sent, thousands at a time, and gives as many in the same order. It may
change `value`, `key`, `partition`, `timestamp` and `header:<name>` columns, but not where rows go or which transaction
they are in. The same rows must always give the same: what is sent again after a failure must be what was sent before.
"""

from __future__ import annotations

from collections.abc import Callable

from contexture.kafka.ports import KafkaErrorLike, MessageLike

Delivered = Callable[[KafkaErrorLike | None, MessageLike], None]
"""Is told of each record that a broker has taken (error None) or not; within a transaction no reader sees it yet. Must
return soon; what it raises is logged and changes nothing. Asking for it costs time for every record."""
