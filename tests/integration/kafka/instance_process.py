"""One instance of a registry publication that can be killed: its own home and tables, and Kafka that it shares.

Run as `python instance_process.py BOOTSTRAP HOME PUBLICATION TOPIC LAST SEED LAG_SECONDS PAUSE_SECONDS`. It does runs
as the tasks do, each of some registry transactions after its watermark, until it is at LAST; it says `inside` on
standard output when it is inside a Kafka transaction, and how its runs end.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[3]
    sys.path[:0] = [str(root / folder) for folder in ("include", "plugins", ".", "tests")]

from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from contexture.errors import RetriableError
from contexture.kafka import ClientSettings, FencedError
from contexture.kafka.clients import transactional_producer
from contexture.sending import Publisher
from contexture.sending.target import KafkaTarget, SendRequest
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.run_events import open_run_events
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction

_spec = importlib.util.spec_from_file_location("sender_process", Path(__file__).with_name("sender_process.py"))
assert _spec is not None
assert _spec.loader is not None
sender_process = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sender_process)


FAILURES_IN_A_ROW = 100


def registry_log(last: int) -> list[RegistryChange]:
    """What the registry did, the same for every instance: each third transaction deletes too."""
    log: list[RegistryChange] = []
    for id in range(1, last + 1):
        log.append(RegistryChange(id, tuple(f"{id % 5}_{n}" for n in range(1 + id % 3))))
        if id % 3 == 0:
            log.append(RegistryChange(id, (f"{(id - 1) % 5}_0",), deletions=True))
    return log


class DwellingTarget(KafkaTarget):
    """Says when it is inside a transaction, and stays there for a while."""

    pause_seconds = 0.0

    def _publisher(self, sending: SendRequest, **options: Any) -> Publisher:
        def opened(*call: Any) -> Any:
            return sender_process.ReportingProducer(transactional_producer(*call), self.pause_seconds)

        return super()._publisher(sending, open_producer=opened, **options)


class Instance:
    """The runs of one instance."""

    def __init__(self, bootstrap: str, home: str, publication: str, topic: str, *, last: int, seed: int) -> None:
        self.storage = Home(home)
        self.publication = structures(publication, topic)
        self.settings = ClientSettings.from_extra({"bootstrap.servers": bootstrap})
        self.last = last
        self.random = random.Random(seed)

    @property
    def watermark(self) -> int:
        return int(self.storage.publication(self.publication.name).state.pointer().watermark or 0)

    def target(self, publication: Any, interval: Any) -> KafkaTarget:
        return DwellingTarget(self.settings, publication, interval)

    def run(self) -> None:
        """Settle, stage, quality_gate, publish, conclude."""
        run_id = uuid4().hex
        with open_run_events(self.storage, sys.stderr.write) as events:
            plan = finish_open_transaction(
                self.storage.publication(self.publication.name),
                self.publication,
                RunRequest(run_id=run_id),
                self.target,
                _silent,
                events,
            )
            if self.watermark == self.last:
                return
            manifest = self.staged(plan.sequence, run_id)
            for shard in apply_verdict(
                self.storage.publication(manifest.publication),
                _staged_outbox(manifest),
                dry_run=False,
                target_for=self.target,
                report=_silent,
            ):
                shard_events = events.shard(manifest, shard)
                store = self.storage.publication(self.publication.name)
                attempts = build_shard_attempts(
                    store, manifest.outbox, shard, self.publication, on_change=shard_events.attempts_changed
                )
                send_shard(
                    self.storage.publication(manifest.publication),
                    manifest,
                    shard,
                    self.target(self.publication, None),
                    attempts,
                    shard_events,
                )
            conclude_run(
                self.storage.publication(manifest.publication),
                _staged_outbox(manifest),
                self.target,
                _silent,
                now=datetime.now(UTC),
            )

    def staged(self, sequence: int, run_id: str) -> Manifest:
        first = self.watermark
        until = min(self.last, first + self.random.randint(1, 5))
        log = [each for each in registry_log(self.last) if first < each.id <= until]
        return registry_outbox(self.storage, self.publication, sequence, log, name=f"{first:04d}-{run_id}")


def _staged_outbox(manifest: Manifest) -> StagedOutbox:
    return StagedOutbox(
        publication=manifest.publication,
        run=manifest.run,
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        records=manifest.records,
        shards=(0,),
    )


def _silent(sentence: str) -> None:
    pass


def main(arguments: list[str]) -> None:
    bootstrap, home, publication, topic, last, seed, lag, pause = arguments
    DwellingTarget.pause_seconds = float(pause)
    instance = Instance(bootstrap, home, publication, topic, last=int(last), seed=int(seed))
    failed = 0
    while instance.watermark < instance.last:
        time.sleep(float(lag) * instance.random.random())
        try:
            instance.run()
            sender_process.report("ran")
            failed = 0
        except (FencedError, RetriableError) as error:
            sender_process.report("fenced" if isinstance(error, FencedError) else "again")
            failed += 1
            sys.stderr.write(f"{error}\n")
            if failed == FAILURES_IN_A_ROW:
                raise
    sender_process.report("done")


if __name__ == "__main__":
    main(sys.argv[1:])
