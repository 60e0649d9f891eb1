"""Where the files of a publication are in the home; private to this package."""

from __future__ import annotations

from dataclasses import dataclass

CURRENT = "CURRENT"
"""The pointer of state, which is replaced last."""


@dataclass(frozen=True, slots=True)
class PublicationPaths:
    """Paths (relative to the home) of one publication."""

    publication: str

    def landing(self, run: str) -> str:
        """What one pull read."""
        return f"{self.publication}/landing/{run}"

    def landing_manifest(self, run: str) -> str:
        """Says that the pull is complete, and how it went."""
        return f"{self.landing(run)}/manifest.json"

    def landing_claim(self, run: str) -> str:
        """Which files of the inbox are in the landing."""
        return f"{self.landing(run)}/inbox.json"

    def work(self, run: str) -> str:
        """Intermediate files of a run; removed when the outbox is complete."""
        return f"{self.publication}/work/{run}"

    def runs(self) -> str:
        """The orders of all runs that retention has left."""
        return f"{self.publication}/runs"

    def orders(self, run: str) -> str:
        """What the scheduler and the stage job of a run wrote for each other."""
        return f"{self.runs()}/{run}"

    def outbox(self, outbox: str) -> str:
        """The records of one run."""
        return f"{self.publication}/outbox/{outbox}"

    def outboxes(self) -> str:
        """All outboxes that retention has left."""
        return f"{self.publication}/outbox"

    def manifest(self, outbox: str) -> str:
        """Says that the outbox is complete, and what is in it."""
        return f"{self.outbox(outbox)}/manifest.json"

    def status(self, outbox: str) -> str:
        """What has become of the outbox."""
        return f"{self.outbox(outbox)}/status.json"

    def attempts(self, outbox: str) -> str:
        """Failed sends of an outbox, a document for each shard that failed."""
        return f"{self.outbox(outbox)}/attempts"

    def shard_attempts(self, outbox: str, shard: int) -> str:
        return f"{self.attempts(outbox)}/shard={shard}.json"

    def shard(self, outbox: str, shard: int) -> str:
        """The Parquet files of one shard."""
        return f"{self.outbox(outbox)}/shard={shard}"

    def outbox_claim(self, outbox: str) -> str:
        """Which files of the inbox the outbox was made of."""
        return f"{self.outbox(outbox)}/inbox.json"

    def quarantine(self, outbox: str) -> str:
        """Events the run refused."""
        return f"{self.quarantines()}/{outbox}"

    def quarantines(self) -> str:
        """What the runs refused that retention has left."""
        return f"{self.publication}/quarantine"

    def report(self, outbox: str) -> str:
        """The data quality report of the run."""
        return f"{self.reports()}/{outbox}"

    def reports(self) -> str:
        """All reports that retention has left."""
        return f"{self.publication}/report"

    def verifications(self) -> str:
        return f"{self.publication}/verification"

    def ledger_seen(self) -> str:
        """Which ledger in Kafka the publication has written to."""
        return f"{self.publication}/ledger.json"

    def known_topics(self) -> str:
        """Which topics in Kafka the publication's runs have sent to, by Kafka's ids."""
        return f"{self.publication}/topics.json"

    def shard_begun(self, shard: int) -> str:
        """Whether a shard was ever sent, in which ledger."""
        return f"{self.shards_begun()}/shard={shard}.json"

    def shards_begun(self) -> str:
        """A document for each shard that was ever sent by a normal run."""
        return f"{self.publication}/ledger"

    def backfilled_shard_begun(self, outbox: str, shard: int) -> str:
        """Whether a shard of a backfill was ever sent: each interval has rows of its own in the ledger."""
        return f"{self.backfilled_shards_begun(outbox)}/shard={shard}.json"

    def backfilled_shards_begun(self, outbox: str) -> str:
        """A document for each shard of a backfill that was ever sent."""
        return f"{self.outbox(outbox)}/ledger"

    def pending(self) -> str:
        """One marker per outbox that is prepared and not yet at its end, named so that they sort by sequence."""
        return f"{self.publication}/pending"

    def pending_marker(self, sequence: int, outbox: str) -> str:
        return f"{self.pending()}/{sequence:012d}-{outbox}.json"

    def state(self) -> str:
        """What the target holds."""
        return f"{self.publication}/state"
