"""The names under which a publication sends: transactional ids and ledger keys, one of each for a shard."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.kafka.ledger_prefix import LEDGER_PREFIX


@dataclass(frozen=True, slots=True)
class SenderNames:
    """How the senders of one publication are called in Kafka.

    Args:
        publication: its name.
        prefix: what transactional ids begin with (`publish.transactional_id_prefix`), never empty.
        backfill: start of the backfilled interval, or None for normal runs. Backfills run beside normal runs, so they
            have ids, keys and a ledger of their own.
    """

    publication: str
    prefix: str = "tx"
    backfill: str | None = None

    def __post_init__(self) -> None:
        if not self.publication or not self.prefix or self.backfill == "":
            raise ValueError("publication, prefix and backfill must not be empty")

    @property
    def ledger_topic(self) -> str:
        """The topic that says how far each shard got."""
        return f"{LEDGER_PREFIX}{self.publication}{'' if self.backfill is None else '.backfill'}"

    def transactional_id(self, shard: int) -> str:
        """The id that only one living sender of this shard may have."""
        middle = "" if self.backfill is None else f"backfill.{self.backfill}."
        return f"{self.prefix}.{self.publication}.{middle}{shard}"

    def ledger_key(self, shard: int) -> bytes:
        """The key of this shard's row in the ledger."""
        return (str(shard) if self.backfill is None else f"{self.backfill}/{shard}").encode()
