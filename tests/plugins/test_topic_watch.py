"""A topic that was removed is filled again by a full run, however it came back and whenever that is noticed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders import states
from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.states import Held
from contexture.errors import ConfigurationError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.state import StatePointer
from contexture_airflow.run import RunPlan, RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction

VEHICLES = publication()
INTERVAL = (NOON, NOON + timedelta(minutes=5))


class City:
    """One publication with its storage and its Kafka, and what its tasks reported."""

    def __init__(self, home: Path) -> None:
        self.storage, self.kafka, self.log = Home(str(home)), FakeTarget(), list[str]()

    def settled(self, **request: object) -> RunPlan:
        asked = RunRequest.model_validate({"run_id": "next", **request})
        return finish_open_transaction(
            self.storage.publication(VEHICLES.name), VEHICLES, asked, self.kafka, self.log.append
        )

    def prepared(self, sequence: int, *cars: Held, mode: str = "changes") -> Manifest:
        rows = [(topic, car.name.encode(), b"{}") for car in cars for topic in car.topics]
        manifest = outbox(self.storage, VEHICLES, sequence, [rows], mode=mode)
        folder = PublicationPaths("vehicles")
        with self.storage.write_atomically(f"{folder.state_delta(manifest.outbox)}/shard-00000.parquet") as path:
            pq.write_table(states.state_table(cars), path)
        order = StageOrder.from_file(self.storage, folder.order(manifest.run))
        owed = order.model_copy(update={"full_run_due": self.pointer().full_run_due})
        self.storage.write(folder.order(manifest.run), owed.to_json())
        return manifest

    def judged(self, manifest: Manifest) -> None:
        apply_verdict(
            self.storage.publication(manifest.publication),
            self._staged(manifest),
            dry_run=False,
            target_for=self.kafka,
            report=self.log.append,
        )

    def sent(self, manifest: Manifest) -> None:
        attempts = build_shard_attempts(self.storage.publication("vehicles"), manifest.outbox, 0, VEHICLES)
        send_shard(self.storage.publication(manifest.publication), manifest, 0, self.kafka, attempts)

    def concluded(self, manifest: Manifest) -> bool:
        found = conclude_run(
            self.storage.publication(manifest.publication),
            self._staged(manifest),
            self.kafka,
            self.log.append,
            now=NOON,
        )
        return found is not None

    def ran(self, manifest: Manifest) -> None:
        self.judged(manifest)
        self.sent(manifest)
        assert self.concluded(manifest)

    def pointer(self) -> StatePointer:
        return self.storage.publication("vehicles").state.pointer()

    def lost(self) -> tuple[str, ...]:
        """The removed topics that state names."""
        found = self.pointer().lost_topics
        return found.topics if found else ()

    def _staged(self, manifest: Manifest) -> StagedOutbox:
        return StagedOutbox(
            publication="vehicles",
            run=manifest.run,
            outbox=manifest.outbox,
            sequence=manifest.sequence,
            records=manifest.records,
            shards=(0,),
        )


@pytest.fixture
def city(tmp_path: Path) -> City:
    made = City(tmp_path)
    made.ran(made.prepared(1, Held("car1"), Held("bike1", topics=("bikes",)), mode="full"))
    return made


def removed(kafka: FakeTarget) -> None:
    kafka.remove_topic("cars")


def made_again(kafka: FakeTarget) -> None:
    kafka.remove_topic("cars")
    kafka.ensure_topics(["cars"])


@pytest.mark.parametrize("lose", [removed, made_again])
def test_the_run_after_a_topic_was_removed_is_full_and_says_why(city: City, lose: Callable[[FakeTarget], None]) -> None:
    lose(city.kafka)
    plan = city.settled()
    assert plan.mode == "full"
    assert "cars was removed from Kafka, noticed at" in plan.why
    assert city.lost() == ("cars",)
    assert [line for line in city.log if line.startswith("warning: cars was removed from Kafka")]


def test_without_a_removed_topic_a_run_sends_changes(city: City) -> None:
    assert (city.settled().mode, city.lost()) == ("changes", ())


def test_a_full_run_that_read_after_it_was_noticed_ends_it(city: City) -> None:
    removed(city.kafka)
    plan = city.settled()
    city.ran(city.prepared(plan.sequence, Held("car1"), Held("bike1", topics=("bikes",)), mode="full"))
    assert (city.pointer().full_run_due, city.lost()) == (None, ())
    assert city.settled().mode == "changes"


def test_changes_alone_do_not_end_it(city: City) -> None:
    removed(city.kafka)
    plan = city.settled()
    city.ran(city.prepared(plan.sequence, Held("car2")))
    assert city.lost() == ("cars",)
    assert city.settled().mode == "full"


def test_a_topic_in_which_state_holds_nothing_may_be_removed(city: City) -> None:
    city.ran(city.prepared(2, Held("bike1", removed=True, topics=("bikes",))))
    city.kafka.remove_topic("bikes")
    assert (city.settled().mode, city.lost()) == ("changes", ())


def test_a_topic_that_is_removed_while_a_run_reads_is_noticed_at_its_gate(city: City) -> None:
    city.settled()
    removed(city.kafka)
    manifest = city.prepared(2, Held("car2"))
    city.judged(manifest)
    assert city.lost() == ("cars",)
    city.sent(manifest)
    assert city.concluded(manifest)
    assert city.settled().mode == "full"


def test_a_topic_that_is_removed_while_an_outbox_is_sent_is_noticed_when_it_is_concluded(city: City) -> None:
    manifest = city.prepared(2, Held("car2"), mode="full")
    city.judged(manifest)
    city.sent(manifest)
    made_again(city.kafka)
    assert city.concluded(manifest)
    assert city.lost() == ("cars",)
    assert city.settled().mode == "full"


def test_a_leftover_that_is_finished_into_a_topic_made_anew_is_not_taken_for_whole(city: City) -> None:
    manifest = city.prepared(2, Held("car2"), mode="full")
    city.judged(manifest)
    removed(city.kafka)
    plan = city.settled()
    assert (plan.settled, plan.mode, city.lost()) == (("outbox2",), "full", ("cars",))
    assert len([line for line in city.log if line.startswith("warning: cars was removed")]) == 1


def test_an_outbox_that_is_approved_again_after_it_was_sent_in_part_is_compared_with_the_first_time(city: City) -> None:
    manifest = city.prepared(2, Held("car2"), mode="full")
    city.judged(manifest)
    city.sent(manifest)
    removed(city.kafka)
    city.judged(manifest)
    assert city.lost() == ("cars",)
    assert city.concluded(manifest)
    assert city.lost() == ("cars",)


def test_a_topic_that_may_not_be_seen_is_not_taken_for_a_removed_one(city: City) -> None:
    city.kafka.hidden_topics = {"cars"}
    assert (city.settled().mode, city.lost()) == ("changes", ())
    city.kafka.remove_topic("bikes")
    assert city.settled().mode == "full"
    city.kafka.hidden_topics = set()
    removed(city.kafka)
    city.settled()
    assert city.lost() == ("bikes", "cars")


def test_another_cluster_has_topics_of_its_own(city: City) -> None:
    city.kafka.cluster_id = "cluster-b"
    city.kafka.topics.clear()
    city.settled()
    assert city.lost() == ()


def test_topics_of_which_nothing_is_recorded_become_known_without_an_alarm(city: City) -> None:
    city.storage.remove("vehicles/topics.json")
    assert (city.settled().mode, city.lost()) == ("changes", ())
    known = city.storage.publication("vehicles").known_topics()
    assert known is not None
    assert known.ids == {"cars": "cars-0", "bikes": "bikes-0"}


def test_a_topic_of_which_nothing_is_recorded_and_that_is_missing_is_filled_again(city: City) -> None:
    city.storage.remove("vehicles/topics.json")
    removed(city.kafka)
    assert (city.settled().mode, city.lost()) == ("full", ("cars",))


def test_a_backfill_whose_topic_was_removed_while_it_was_sent_is_abandoned(city: City) -> None:
    past = outbox(
        city.storage, VEHICLES, 1, [records("car0")], name="past", run="past", mode="backfill", interval=INTERVAL
    )
    city.judged(past)
    city.sent(past)
    made_again(city.kafka)
    with pytest.raises(ConfigurationError, match="cars was removed from Kafka") as refused:
        city.concluded(past)
    assert refused.value.next_step == "start the backfill of this interval again"
    assert city.storage.publication("vehicles").outboxes.status("past").status == "abandoned"
    # The backfill is no part of state, and the next run of the publication notices the same.
    assert city.lost() == ()
    assert city.settled().mode == "full"


def test_a_backfill_that_makes_a_removed_topic_does_not_hide_that(city: City) -> None:
    removed(city.kafka)
    past = outbox(
        city.storage, VEHICLES, 1, [records("car0")], name="past", run="past", mode="backfill", interval=INTERVAL
    )
    city.ran(past)
    assert (city.settled().mode, city.lost()) == ("full", ("cars",))
