"""Where a publication's files are below the home, as tests write, damage and count them by hand.

It says the layout once more than the product does, so that no file changes its place unseen.
"""

from __future__ import annotations

from dataclasses import dataclass


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

    def landing_before(self, run: str) -> str:
        """The selected structures of a registry before the transactions that a backfill's landing shows."""
        return f"{self.landing(run)}/structures_before.json"

    def work(self, run: str) -> str:
        """What prepare writes on the way; removed when the outbox is complete."""
        return f"{self.publication}/work/{run}"

    def runs(self) -> str:
        """The orders of all runs that retention has left."""
        return f"{self.publication}/runs"

    def orders(self, run: str) -> str:
        """The order and the result that the scheduler and the stage job exchange."""
        return f"{self.runs()}/{run}"

    def order(self, run: str) -> str:
        """What the stage job is asked to do."""
        return f"{self.orders(run)}/order.json"

    def result(self, run: str) -> str:
        """What the stage job answered."""
        return f"{self.orders(run)}/result.json"

    def chosen(self, run: str) -> str:
        """Which quarantined events the run tries again."""
        return f"{self.orders(run)}/retry.parquet"

    def shrink_decision(self, run: str) -> str:
        """What a person decided about that."""
        return f"{self.orders(run)}/shrink-decision.json"

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
        """Failed sends of one shard."""
        return f"{self.attempts(outbox)}/shard={shard}.json"

    def shard(self, outbox: str, shard: int) -> str:
        """The Parquet files of one shard."""
        return f"{self.outbox(outbox)}/shard={shard}"

    def outbox_claim(self, outbox: str) -> str:
        """Which files of the inbox the outbox was made of."""
        return f"{self.outbox(outbox)}/inbox.json"

    def topics(self, outbox: str) -> str:
        """The topics an outbox writes to, with their counts of records."""
        return f"{self.outbox(outbox)}/topics.parquet"

    def collisions(self, outbox: str) -> str:
        """The events whose topic is another identity's; there only where such were found."""
        return f"{self.outbox(outbox)}/collisions.parquet"

    def dead_letters(self, outbox: str) -> str:
        """Which of its records are in the dead-letter topic; there only where some are."""
        return f"{self.outbox(outbox)}/dead_letters.json"

    def transcoded(self, outbox: str) -> str:
        """The structures that were converted, and what was lost; there only where such were."""
        return f"{self.outbox(outbox)}/transcoded.parquet"

    def state_delta(self, outbox: str) -> str:
        """Folder of what concluding the outbox changes in state."""
        return f"{self.outbox(outbox)}/state_delta"

    def seen_types(self, outbox: str) -> str:
        """The NGSI types of attributes that the run saw."""
        return f"{self.state_delta(outbox)}/types.json"

    def quarantine(self, outbox: str) -> str:
        """Events the run refused."""
        return f"{self.quarantines()}/{outbox}"

    def quarantines(self) -> str:
        """What the runs refused that retention has left."""
        return f"{self.publication}/quarantine"

    def retried(self, outbox: str) -> str:
        """Which of these events were tried again: a file for each outbox that did."""
        return f"{self.quarantine(outbox)}/retried"

    def report(self, outbox: str) -> str:
        """The data quality report of the run."""
        return f"{self.reports()}/{outbox}"

    def reports(self) -> str:
        """All reports that retention has left."""
        return f"{self.publication}/report"

    def verdict(self, outbox: str) -> str:
        """The checkpoint's result in one file."""
        return f"{self.report(outbox)}/verdict.json"

    def samples(self, outbox: str) -> str:
        """A few of what broke each rule and expectation."""
        return f"{self.report(outbox)}/samples.json"

    def ledger_seen(self) -> str:
        """Which ledger in Kafka the publication has written to."""
        return f"{self.publication}/ledger.json"

    def known_topics(self) -> str:
        """Which topics in Kafka the publication's runs have sent to, by Kafka's ids."""
        return f"{self.publication}/topics.json"

    def pending(self) -> str:
        """One marker per outbox that is prepared and not yet at its end, named so that they sort by sequence."""
        return f"{self.publication}/pending"

    def pending_marker(self, sequence: int, outbox: str) -> str:
        """The marker of one outbox."""
        return f"{self.pending()}/{sequence:012d}-{outbox}.json"

    def state(self) -> str:
        """What the target holds."""
        return f"{self.publication}/state"

    def current_state(self) -> str:
        """The pointer that is replaced last."""
        return f"{self.state()}/CURRENT"
