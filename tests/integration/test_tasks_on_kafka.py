"""The steps behind the tasks, on a real broker."""

from __future__ import annotations

from pathlib import Path
from random import randbytes

import pytest

from builders import states
from builders.outboxes import outbox, records, say_whom
from builders.states import Held, held
from builders.task_runs import INTERVAL, City
from contexture.kafka import TopicSpec, ensure_topics, read_committed
from contexture_airflow.run import RunRequest
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka) -> City:
    return City(tmp_path, kafka)


def test_a_run_sends_each_record_once_and_state_remembers_the_cluster(city: City) -> None:
    assert city.ran(city.prepared(1, "car1 car2", "car3"))
    assert city.keys() == [b"car1", b"car2", b"car3"]
    pointer = city.storage.publication(city.publication.name).state.pointer()
    assert (pointer.sequence, pointer.target) == (1, city.settings.identity())
    assert pointer.cluster == city.target(city.publication, None).cluster()


def test_a_publication_that_never_sent_has_no_progress(city: City) -> None:
    target = city.target(city.publication, None)
    assert (target.progress(0), target.highest_sequence()) == (None, 0)


def test_a_run_without_records_is_concluded_and_takes_its_number(city: City) -> None:
    assert city.ran(city.prepared(1, "car1", ""))
    assert city.ran(city.prepared(2, "", ""))
    assert city.target(city.publication, None).highest_sequence() == 2


def test_settle_finishes_what_was_sent_in_part(city: City) -> None:
    manifest = city.prepared(1, "car1 car2", "car3")
    city.judged(manifest)
    city.sent(manifest, 0)
    plan = finish_open_transaction(
        city.storage.publication(city.publication.name),
        city.publication,
        RunRequest(run_id="next"),
        city.target,
        city.log.append,
    )
    assert (plan.settled, plan.sequence, plan.mode) == (("outbox1",), 2, "changes")
    assert city.keys() == [b"car1", b"car2", b"car3"]


def test_an_old_publish_task_cleared_after_a_newer_run_sends_nothing(city: City) -> None:
    old = city.prepared(1, "car1", "car2")
    city.judged(old)
    assert city.ran(city.prepared(2, "", "car3"))
    assert [city.sent(old, 0), city.sent(old, 1)] == [0, 0]
    assert city.keys() == [b"car3"]
    assert not city.concluded(old)
    assert city.outboxes.status("outbox1").status == "abandoned"


def test_a_backfill_has_a_ledger_of_its_own_and_supersedes_nothing(city: City) -> None:
    assert city.ran(city.prepared(1, "car1", ""))
    plan = finish_open_transaction(
        city.storage.publication(city.publication.name),
        city.publication,
        RunRequest(run_id="past", interval=INTERVAL),
        city.target,
        city.log.append,
    )
    assert (plan.mode, plan.sequence) == ("backfill", 1)
    past = outbox(
        city.storage,
        city.publication,
        plan.sequence,
        [records("car0", topic=city.topic)],
        name="past",
        run=plan.run,
        mode="backfill",
        interval=INTERVAL,
    )
    assert city.ran(past)
    assert city.keys() == [b"car0", b"car1"]
    assert city.target(city.publication, None).highest_sequence() == 1
    assert city.storage.publication(city.publication.name).state.pointer().outbox == "outbox1"


def test_what_no_topic_takes_is_dead_lettered_and_the_next_run_concludes(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    city = City(tmp_path, kafka, publish={"on_failure": "dead-letter"})
    ensure_topics(city.settings, [TopicSpec(city.topic, config={"max.message.bytes": "20000"}, keep="latest")])
    rows = [*records("car1", topic=city.topic), (city.topic, b"car2", randbytes(30_000))]
    cars = [Held("car1"), Held("car2")]
    manifest = states.approved(city.storage, city.publication, 1, cars, [rows])
    say_whom(city.storage, manifest)
    city.judged(manifest)
    city.sent(manifest, 0)
    # The task that would conclude it is killed: the next run reads in the ledger what was dead-lettered.
    plan = finish_open_transaction(
        city.storage.publication(city.publication.name),
        city.publication,
        RunRequest(run_id="next"),
        city.target,
        city.log.append,
    )
    assert plan.settled == ("outbox1",)
    assert city.keys() == [b"car1"]
    (letter,) = read_committed(city.settings, [f"contexture.dead-letter.{city.publication.name}"])
    assert (letter.key, len(letter.value or b"")) == (b"car2", 30_000)
    assert dict(letter.headers)["contexture_refused_topic"] == city.topic.encode()
    assert city.storage.publication(manifest.publication).outbox(manifest.outbox).dead_letters().shards == {0: (1,)}
    assert set(held(city.storage, city.publication.name)) == {"car1"}
