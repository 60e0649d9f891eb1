"""Every record is in Kafka once for a read-committed reader, whatever is killed when."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from contexture.kafka import ClientSettings, FencedError, TopicSpec, ensure_topics, read_committed
from contexture.kafka.clients import transactional_producer
from contexture.sending import Ledger, Publisher, SenderNames
from contexture.sending.testing import MemoryShard
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SENDER = Path(__file__).with_name("sender_process.py")
_spec = importlib.util.spec_from_file_location("sender_process", SENDER)
sender_process = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sender_process)

RECORDS = 4_000
TRANSACTION_RECORDS = 100
# Kills that fell between a first record and the call of commit; those within commit come on top.
KILLS_INSIDE_OF_A_SHARD = 10
KILLS_AT_MOST = 25
# Long beside the time that a kill takes on a busy machine, or most kills would come too late.
DWELL_SECONDS = 0.3


class KilledSender:
    """Starts senders of one shard one after the other and kills each inside a transaction."""

    def __init__(self, bootstrap, publication, shard, topic):
        self.arguments = [bootstrap, publication, str(shard), "2", topic, str(RECORDS), str(TRANSACTION_RECORDS)]
        self.random = random.Random(shard)
        self.kills = Counter()
        self.finished = False

    def run(self):
        while self.kills["inside"] < KILLS_INSIDE_OF_A_SHARD and self.kills.total() < KILLS_AT_MOST:
            self.kill_one()
        with self.start() as sender:
            self.finished = sender.communicate(timeout=300)[0].split()[-1] == b"done"

    def kill_one(self):
        """Kills in the second or third transaction, some time after its first record; notes what it was doing."""
        inside = self.random.randint(2, 3)
        with self.start(inside, DWELL_SECONDS) as sender:
            for line in sender.stdout:
                inside -= line == b"inside\n"
                if not inside:
                    break
            time.sleep(self.random.uniform(0.0, 1.1 * DWELL_SECONDS))
            sender.kill()
            rest = sender.stdout.read().split()
        self.kills[(rest or [b"inside"])[-1].decode()] += 1

    def start(self, dwells_from=1, pause_seconds=0.0):
        command = [sys.executable, str(SENDER), *self.arguments, str(pause_seconds), str(dwells_from)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)


def test_two_shards_survive_kills_inside_transactions(kafka):
    settings = ClientSettings.from_extra(kafka.client_settings())
    topic = "exactly-once-killed"
    ensure_topics(settings, [TopicSpec(topic, partitions=3)])
    senders = [KilledSender(kafka.bootstrap_servers, topic, shard, topic) for shard in (0, 1)]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    kills = senders[0].kills + senders[1].kills
    assert all(sender.finished for sender in senders)
    assert kills["inside"] >= 20
    assert_once_and_in_order(settings, topic, shards=(0, 1))
    ledger = Ledger(settings, SenderNames(topic))
    assert {shard: entry.position for shard, entry in ledger.entries().items()} == {0: RECORDS, 1: RECORDS}


# With users and TLS, a broker that comes back must not look like one that refuses us.
@pytest.mark.parametrize(
    ("ending", "security"),
    [("restart", Security("SASL_SSL", users={"anna": "open-sesame"})), ("kill", Security())],
    ids=["restart", "kill"],
)
def test_a_broker_restart_in_mid_send_loses_and_doubles_nothing(ending, security):
    with EmbeddedKafka(security=security) as cluster:
        settings = ClientSettings.from_extra(cluster.client_settings())
        ensure_topics(settings, [TopicSpec("restarted", partitions=3)])
        halfway = threading.Event()
        results = []

        def report(progress):
            if progress.position >= RECORDS // 4:
                halfway.set()

        def send():
            publisher = Publisher(
                settings,
                SenderNames("restarted"),
                shards=1,
                progress=report,
                open_producer=lambda *call: sender_process.ReportingProducer(transactional_producer(*call), 0.05),
            )
            rows = sender_process.shard_rows(0, "restarted", RECORDS, TRANSACTION_RECORDS)
            results.append(publisher.publish(MemoryShard(rows)))

        thread = threading.Thread(target=send)
        thread.start()
        assert halfway.wait(180)
        if ending == "kill":
            cluster.kill()
            time.sleep(1.0)
            cluster.start()
        else:
            cluster.restart()
        thread.join(300)
        assert results[0].records_sent == RECORDS
        assert_once_and_in_order(settings, "restarted", shards=(0,))


def test_of_two_senders_one_is_fenced_and_nothing_is_doubled(kafka):
    settings = ClientSettings.from_extra(kafka.client_settings())
    topic = "exactly-once-fenced"
    ensure_topics(settings, [TopicSpec(topic, partitions=3)])
    rows = sender_process.shard_rows(0, topic, RECORDS, TRANSACTION_RECORDS)
    underway = threading.Event()
    outcomes = []

    def send(progress):
        publisher = Publisher(
            settings,
            SenderNames(topic),
            shards=1,
            progress=progress,
            open_producer=lambda *call: sender_process.ReportingProducer(transactional_producer(*call), 0.02),
        )
        try:
            outcomes.append(publisher.publish(MemoryShard(rows)))
        except FencedError as fenced:
            outcomes.append(fenced)

    def report(progress):
        if progress.position >= 500:
            underway.set()

    first = threading.Thread(target=send, args=(report,))
    first.start()
    assert underway.wait(180)
    send(lambda progress: None)
    first.join(180)
    fenced, sent = sorted(outcomes, key=lambda outcome: not isinstance(outcome, FencedError))
    assert isinstance(fenced, FencedError)
    assert sent.records_skipped >= 500
    assert sent.records_sent + sent.records_skipped == RECORDS
    assert_once_and_in_order(settings, topic, shards=(0,))


def assert_once_and_in_order(settings, topic, shards):
    by_key = {}
    for record in read_committed(settings, [topic]):
        by_key.setdefault(record.key, []).append(record.value)
    expected = {
        b"%d-%d" % (shard, key): [b"%d-%d" % (shard, n) for n in range(key, RECORDS, 50)]
        for shard in shards
        for key in range(50)
    }
    assert by_key == expected
