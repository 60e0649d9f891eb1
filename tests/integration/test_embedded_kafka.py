"""The embedded Kafka is a real one: it keeps data, survives kill -9, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contexture.errors import ConfigurationError
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security

pytestmark = pytest.mark.integration

# A password with what property files and JAAS lines find hard.
PASSWORD = 'pa"ss\\wörd; x=1'


def new_topic(settings: dict[str, str], *, copies: int = 1) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(settings)
    created = admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=copies)])
    created[name].result(60)
    return name


def send(settings: dict[str, str], topic: str, *values: bytes) -> None:
    failures: list[KafkaError] = []
    producer = Producer({**settings, "acks": "all", "message.timeout.ms": "20000"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failures == []


def read(settings: dict[str, str], topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({**settings, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    return values


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def listening_addresses(process: int) -> set[str]:
    """The local addresses, as the kernel writes them, on which a process listens."""
    sockets = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:  # Closed meanwhile.
            continue
        if target.startswith("socket:["):
            sockets.add(target.removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and columns[9] in sockets:
                found.add(columns[1].split(":")[0])
    return found


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One that these tests may stop and kill."""
    with EmbeddedKafka(data_folder=tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


def test_what_is_produced_can_be_consumed(kafka: EmbeddedKafka) -> None:
    topic = new_topic(kafka.client_settings())
    send(kafka.client_settings(), topic, b"one", b"two")
    assert read(kafka.client_settings(), topic, 2) == [b"one", b"two"]


def test_an_aborted_transaction_is_hidden_from_read_committed_readers(kafka: EmbeddedKafka) -> None:
    topic = new_topic(kafka.client_settings())
    producer = Producer({**kafka.client_settings(), "transactional.id": topic})
    producer.init_transactions(60)
    for value, finish in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(60)
        finish(20)
    assert read({**kafka.client_settings(), "isolation.level": "read_committed"}, topic, 1) == [b"committed"]


def test_brokers_listen_on_the_loopback_address_only(kafka: EmbeddedKafka) -> None:
    # 0100007F is 127.0.0.1; the longer one is the same address in the table of IPv6 sockets.
    [process] = kafka.process_ids
    addresses = listening_addresses(process)
    assert addresses
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_a_restart_keeps_data_and_address(own_kafka: EmbeddedKafka) -> None:
    before = own_kafka.bootstrap_servers
    topic = new_topic(own_kafka.client_settings())
    send(own_kafka.client_settings(), topic, b"kept")
    own_kafka.restart()
    assert own_kafka.bootstrap_servers == before
    assert read(own_kafka.client_settings(), topic, 1) == [b"kept"]


def test_a_stop_is_in_good_order(own_kafka: EmbeddedKafka) -> None:
    own_kafka.stop()
    assert own_kafka.running == (False,)
    assert (own_kafka.folder / "node-1" / "data" / ".kafka_cleanshutdown").exists()
    own_kafka.start()
    assert own_kafka.running == (True,)


def test_a_killed_broker_starts_again_with_what_it_had_acknowledged(own_kafka: EmbeddedKafka) -> None:
    topic = new_topic(own_kafka.client_settings())
    send(own_kafka.client_settings(), topic, *(str(number).encode() for number in range(100)))
    own_kafka.kill()
    assert own_kafka.running == (False,)
    own_kafka.start()
    assert read(own_kafka.client_settings(), topic, 100) == [str(number).encode() for number in range(100)]


def test_a_sender_waits_out_a_restart(own_kafka: EmbeddedKafka) -> None:
    topic = new_topic(own_kafka.client_settings())
    producer = Producer({**own_kafka.client_settings(), "enable.idempotence": True, "log_level": 0})
    producer.produce(topic, b"before")
    assert producer.flush(60) == 0
    own_kafka.kill()
    producer.produce(topic, b"while away")
    own_kafka.start()
    assert producer.flush(60) == 0
    assert read(own_kafka.client_settings(), topic, 2) == [b"before", b"while away"]


def test_a_kept_folder_is_used_again_by_another_cluster_object(tmp_path: Path) -> None:
    with EmbeddedKafka(data_folder=tmp_path) as first:
        topic = new_topic(first.client_settings())
        send(first.client_settings(), topic, b"kept")
    with EmbeddedKafka(data_folder=tmp_path) as second:
        assert read(second.client_settings(), topic, 1) == [b"kept"]


def test_nothing_is_left_after_the_context() -> None:
    with EmbeddedKafka() as cluster:
        [process] = cluster.process_ids
    assert not alive(process)
    assert not cluster.folder.exists()


OWNER = """
import sys, time
from contexture_sandbox.kafka import EmbeddedKafka
with EmbeddedKafka() as cluster:
    print(*cluster.process_ids, cluster.folder, flush=True)
    time.sleep(600)
"""


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        process, folder = owner.stdout.readline().split()
        assert alive(int(process))
        owner.kill()
    assert wait_until(lambda: not alive(int(process)))
    assert wait_until(lambda: not Path(folder).exists())


def test_ctrl_c_ends_the_command_line_s_kafka() -> None:
    command = [sys.executable, "-m", "contexture_sandbox", "kafka"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        servers = owner.stdout.readline().strip()
        folder = Path(owner.stderr.readline().split("its folder is ")[1].split(";")[0])
        assert AdminClient({"bootstrap.servers": servers}).list_topics(timeout=60).brokers
        os.killpg(owner.pid, signal.SIGINT)
        assert owner.wait(90) == 0
    assert not folder.exists()
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=1)


def test_a_broker_that_dies_says_why() -> None:
    with pytest.raises(ConfigurationError, match=r"ended with exit code 1(.|\n)*no.such.codec"):
        EmbeddedKafka(broker_config={"compression.type": "no.such.codec"}).__enter__()


def test_a_taken_port_is_named_as_the_reason(kafka: EmbeddedKafka) -> None:
    taken = int(kafka.bootstrap_servers.rpartition(":")[2])
    assert kafka.running == (True,)
    with pytest.raises(ConfigurationError, match="Address already in use"):
        EmbeddedKafka(ports=[taken]).__enter__()


def test_a_port_that_something_else_has_is_named_as_the_reason() -> None:
    refused = pytest.raises(ConfigurationError, match="Address already in use")
    with socket.create_server(("127.0.0.1", 0)) as silent, refused:
        EmbeddedKafka(ports=[silent.getsockname()[1]]).__enter__()


def test_other_than_one_or_three_brokers_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 embedded Kafka brokers"):
        EmbeddedKafka(2)


def test_three_brokers_go_on_without_one() -> None:
    with EmbeddedKafka(3) as cluster:
        settings = {**cluster.client_settings(), "log_level": 0}
        topic = new_topic(settings, copies=3)
        send(settings, topic, b"all there")
        cluster.kill(1)
        assert cluster.running == (True, False, True)
        send(settings, topic, b"one away")
        cluster.start()
        assert cluster.running == (True, True, True)
        assert len(AdminClient(settings).list_topics(timeout=60).brokers) == 3
        assert read(settings, topic, 2) == [b"all there", b"one away"]


def test_scram_lets_in_who_knows_the_password() -> None:
    with EmbeddedKafka(security=Security("SASL_PLAINTEXT", users={"alice": PASSWORD})) as cluster:
        settings = cluster.client_settings("alice")
        topic = new_topic(settings)
        send(settings, topic, b"secret")
        cluster.restart()
        assert read(settings, topic, 1) == [b"secret"]
        with pytest.raises(KafkaException):
            AdminClient({**settings, "sasl.password": "wrong", "log_level": 0}).list_topics(timeout=2)
        assert PASSWORD not in (cluster.folder / "node-1" / "broker.log").read_text()


def test_tls_with_client_certificates_and_a_login() -> None:
    security = Security("SASL_SSL", users={"alice": PASSWORD}, client_certificates=True)
    with EmbeddedKafka(security=security) as cluster:
        settings = cluster.client_settings()
        topic = new_topic(settings)
        send(settings, topic, b"encrypted")
        assert read(settings, topic, 1) == [b"encrypted"]
        bare = {
            name: value
            for name, value in settings.items()
            if not name.endswith((".certificate.location", ".key.location"))
        }
        with pytest.raises(KafkaException):
            AdminClient({**bare, "log_level": 0}).list_topics(timeout=2)
