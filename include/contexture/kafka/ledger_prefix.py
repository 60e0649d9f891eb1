"""The names under which a publication sends: transactional ids and ledger keys, one of each for a shard."""

from __future__ import annotations

LEDGER_PREFIX = "contexture.ledger."
