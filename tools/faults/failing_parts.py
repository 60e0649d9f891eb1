"""Parts that fail alone: a ledger loses rows, a sender is let go within the next outbox, brokers of three go away.

The first two run beside others on one broker. `broken_cluster` takes brokers from several senders at once: each of them
is a run. Its topics have three replicas, as a real cluster's have, and so have half of the ledgers; the other half have
one, so that a broker that goes takes the ledger away and leaves the records.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from contexture.kafka.admin import NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.sending.claims import Claims
from contexture.sending.ledger import Ledger, LedgerEntry
from contexture.sending.ledger_rebuild import write_rows
from contexture.sending.resume import ExpectedRow
from contexture.sending.testing import MemoryShard
from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.loads import Load, context_load
from tools.faults.moments import MOMENTS, Moment
from tools.faults.probe import Aim
from tools.faults.supervisor import SenderProcess
from tools.faults.trial import Cell, Outcome, Trial, failing_loudly

BROKEN_CLUSTER: Final = "brokers of three"

_CALL_SECONDS: Final = 30.0
_LEADER_SECONDS: Final = 60.0
_BROKERS: Final = 3


def let_go(trial: Trial) -> Outcome:
    """A sender of an outbox that was given up goes on at a moment of the next one, which has other shards."""
    topics = trial.make_topics(2)
    before, after = trial.random.choice([(3, 1), (3, 2), (2, 4), (3, 5)])
    old = context_load(topics, outbox="old", sequence=1, shards=before, records=40)
    new = context_load(topics, outbox="new", sequence=2, shards=after, records=40)
    lingering = trial.random.choice(old.shards)
    with trial.sender(lingering, trial.aim(), shards=before) as sender:
        sender.held()
        claim_all(trial, new)
        chosen = trial.random.randrange(after)
        for shard in new.shards[:chosen]:
            trial.finish(shard, shards=after)
        aim = trial.aim(trial.random.choice(MOMENTS), transactions=3)
        with trial.sender(new.shards[chosen], aim, shards=after) as following:
            following.held()
            _go(sender)
            ending = sender.ending()
            _go(following)
            trial.expect(following.ending().error is None, f"the next outbox's sender: {following.ending()}")
        for shard in new.shards[chosen + 1 :]:
            trial.finish(shard, shards=after)
    trial.expect(
        ending.error == "FencedError" or ending.superseded or trial.cell.moment is Moment.IN_COMMIT,
        f"a sender of the outbox that was given up ended with {ending}",
    )
    return trial.outcome(new.records, old.records)


def ledger_emptied(trial: Trial) -> Outcome:
    """The ledger loses the row of a half-sent shard: the next sender refuses, and goes on when it is written again."""
    load = context_load(trial.make_topics(2), outbox="one")
    shard = load.shards[0]
    aims = trial.kills_ahead(1)
    # A transaction is committed before the last kill, so that there is a row to lose.
    aims[-1] = Aim(aims[-1].moment, aims[-1].transaction + 1, aims[-1].record)
    trial.kill_at(shard, aims)
    ledger = Ledger(trial.settings, trial.names)
    ledger.prepare(1)
    # What was open is settled before the row is looked at: it says how far readers see the shard.
    entry = _settled_row(trial, shard)
    _empty(trial)
    with trial.sender(shard, row=ExpectedRow.CERTAIN) as sender:
        ending = sender.ending()
    trial.expect(ending.error == "LedgerLostError", f"a sender without the ledger's row ended with {ending}")
    write_rows(trial.settings, trial.names, ledger, {0: entry}, shards=1)
    trial.finish(shard)
    return trial.outcome(load.records)


def claim_all(trial: Trial, load: Load) -> None:
    """As quality_gate does where the number of shards changed: every shard is claimed before the first record."""
    first = load.shards[0]
    claims = Claims(trial.settings, trial.names, Ledger(trial.settings, trial.names))
    report = claims.claim(first.outbox_id, first.sequence, shards=len(load.shards), used=())
    trial.expect(not report.superseded, "the next outbox was taken for an earlier one")


def broken_cluster(kafka: EmbeddedKafka, cells: Sequence[Cell]) -> list[Outcome]:
    """A broker is killed under senders that stand at their moments, then another one, and each comes back.

    Args:
        kafka: a cluster of three.
        cells: the runs, all at once.
    """
    trials = [Trial(cell, kafka.bootstrap_servers, replicas=_BROKERS) for cell in cells]
    loads = [context_load(trial.make_topics(2), outbox="one") for trial in trials]
    for number, trial in enumerate(trials):
        trial.timeout_ms = trial.random.choice([3_000, 20_000])
        if number % 2:
            _make_ledger_without_replicas(trial)
    first = random.Random(f"{cells[0].seed}/{cells[0].number}").randrange(_BROKERS)
    with ExitStack() as stack:
        senders = [
            stack.enter_context(trial.sender(load.shards[0], trial.aim()))
            for trial, load in zip(trials, loads, strict=True)
        ]
        for sender in senders:
            sender.held()
        early = [trial.random.random() < 0.5 for trial in trials]
        kafka.kill(first)
        _let(senders, early)
        time.sleep(2.0)
        kafka.start()
        _await_leaders(kafka)
        kafka.kill((first + 1) % _BROKERS)
        _let(senders, [not each for each in early])
        time.sleep(2.0)
        kafka.start()
        for trial, sender, load in zip(trials, senders, loads, strict=True):
            with failing_loudly(trial.cell):
                ending = sender.ending()
                is_again = ending.error in {"RetriableError", "BrokersAwayError"}
                trial.expect(
                    ending.error is None or is_again, f"the sender ended with {ending.error}: {ending.message}"
                )
                if is_again:
                    trial.finish(load.shards[0])
    return [trial.outcome(load.records) for trial, load in zip(trials, loads, strict=True)]


def _go(sender: SenderProcess) -> None:
    if sender.is_alive and sender.last_moment is not Moment.IN_COMMIT:
        sender.go()


def _let(senders: Sequence[SenderProcess], which: Sequence[bool]) -> None:
    for sender, chosen in zip(senders, which, strict=True):
        if chosen:
            _go(sender)


def _settled_row(trial: Trial, shard: MemoryShard) -> LedgerEntry:
    """The shard's row when nothing is open any more: a sender that holds before its first transaction saw to it."""
    with trial.sender(shard, Aim(Moment.AFTER_BEGIN)) as sender:
        if sender.held():
            sender.kill()
    entry = Ledger(trial.settings, trial.names).read(0)
    if entry is None:
        raise ValueError("no transaction was committed before the ledger was emptied")
    return entry


def _empty(trial: Trial) -> None:
    """Removes all rows, which Kafka allows where the policy is not compaction alone."""
    admin, topic = AdminClient({"bootstrap.servers": trial.bootstrap}), trial.names.ledger_topic
    for policy in ("delete", "compact"):
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        changed = admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
        )
        for future in changed.values():
            future.result(_CALL_SECONDS)
        if policy == "delete":
            _delete(admin, topic)


def _delete(admin: AdminClient, topic: str) -> None:
    """The broker goes by the former policy for a moment."""
    deadline = time.monotonic() + _CALL_SECONDS
    while True:
        try:
            for future in admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values():
                future.result(_CALL_SECONDS)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.POLICY_VIOLATION or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _make_ledger_without_replicas(trial: Trial) -> None:
    admin = TopicAdmin(trial.settings, BrokerWait(_CALL_SECONDS))
    topic = trial.names.ledger_topic
    admin.create([NewTopicOrder(topic, 1, 1, {"cleanup.policy": "compact"})])
    admin.await_usable({topic: 1})


def _await_leaders(kafka: EmbeddedKafka) -> None:
    """Waits until every partition has a leader, and all its replicas in sync."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    deadline = time.monotonic() + _LEADER_SECONDS
    while time.monotonic() < deadline:
        topics = admin.list_topics(timeout=_CALL_SECONDS).topics.values()
        partitions = [each for topic in topics for each in topic.partitions.values()]
        if partitions and all(each.leader >= 0 and len(each.isrs) == len(each.replicas) for each in partitions):
            return
        time.sleep(0.2)
