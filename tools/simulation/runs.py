"""A schedule carried out: outboxes sent by tasks as Airflow's are, which die, stop and are replaced."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.kafka import ClientSettings, FencedError
from contexture.publications import Publication
from contexture.sending.ledger import SenderNames
from contexture.sending.target import KafkaTarget, SendRequest
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.steps import publish
from contexture_airflow.steps.conclude import _committed
from tools.simulation.clients import World
from tools.simulation.events import EndlessError, Process
from tools.simulation.loads import PUBLICATION, TOPICS, Load, load
from tools.simulation.plans import EMPTIED, RESHARDED, Fate, Plan
from tools.simulation.verdict import Verdict, judge, missing

_SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "simulated:9092", "transaction.timeout.ms": 10_000})
_PUBLICATION = Publication.model_validate(
    {
        "name": PUBLICATION,
        "source": {"kind": "ngsi", "connection": "simulated", "service": "", "types": ["Any"]},
        "publish": {"broker_wait_seconds": 60},
    }
)
_LEDGER = SenderNames(PUBLICATION).ledger_topic
_ATTEMPTS_MS = (200, 200, 500)
_AGAIN_SECONDS = 0.5
_MOST_ATTEMPTS = 14
# From then on nothing goes wrong any more: what has not ended by itself is stuck.
_CALM_AFTER_ATTEMPTS = 5
_MOST_SECONDS = 3_000.0
# After a sender has ended well, readers see all of it, but for the moment that markers take.
_SEEN_SECONDS = 1.0

if TYPE_CHECKING:
    from contexture.storage.file_tree import FileTree


class _Home:
    """A home in memory; holds what is known of the ledger."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def read(self, relative: str) -> bytes:
        if relative not in self._contents:
            raise FileNotFoundError(relative)
        return self._contents[relative]

    def write(self, relative: str, content: bytes) -> None:
        self._contents[relative] = content

    def exists(self, relative: str) -> bool:
        return relative in self._contents

    def files(self, folder: str, suffix: str = "") -> list[str]:
        found = (path.removeprefix(f"{folder}/") for path in self._contents if path.startswith(f"{folder}/"))
        return [name for name in found if name.endswith(suffix)]


class SimulatedTarget(KafkaTarget):
    """Contexture's own, of a cluster that needs not be asked which it is."""

    def cluster(self) -> str | None:
        """Always the same."""
        return "simulated"


TargetOf = Callable[..., KafkaTarget]


@dataclass(slots=True)
class _Task:
    """The sending of a shard, by as many processes as it takes."""

    number: int
    load: Load
    shard: int
    fates: tuple[Fate, ...]
    attempts: int = 0
    is_done: bool = False
    is_given_up: bool = False
    failures: list[ContextureError] = field(default_factory=list)
    alive: list[Process] = field(default_factory=list)


class Run:
    """One schedule.

    Args:
        plan: of it.
        traced: keep what happens for people.
        target_of: makes the target that tasks send to; another one shows what its sender would do.
    """

    def __init__(self, plan: Plan, *, traced: bool = False, target_of: TargetOf = SimulatedTarget) -> None:
        self.plan = plan
        self._target_of = target_of
        self.world = World(plan.seed, plan.weather, traced=traced, batch_records=plan.batch_records)
        self.world.drops_producers = True
        self.verdict = Verdict()
        # What the steps ask of storage, and nothing else.
        self._store = PublicationStore(cast("FileTree", _Home()), PUBLICATION)
        self._loads = tuple(
            load(number + 1, shards, plan.records, plan.transaction) for number, shards in enumerate(plan.shards)
        )
        self._tasks: list[_Task] = []
        self._processes: list[Process] = []
        self._concluded = [False, False]
        self._is_over = False
        self._was_emptied = False
        self._alive = 0

    def carry_out(self) -> Verdict:
        """Returns what came of the schedule; nothing of it is logged, because traces show more."""
        log = logging.getLogger("contexture")
        level = log.level
        log.setLevel(logging.CRITICAL + 1)
        try:
            return self._carry_out()
        finally:
            log.setLevel(level)

    def _carry_out(self) -> Verdict:
        """Gives what became of it."""
        for topic in TOPICS:
            self.world.brokers.make(topic, 2)
        self._begin(0)
        events = self.world.events
        try:
            if not events.run(lambda: self._is_over, until=_MOST_SECONDS):
                self.verdict.add("stuck", 1, self._why_stuck())
        except EndlessError as endless:
            self.verdict.add("stuck", 1, str(endless))
            return self.verdict
        self.world.network.calm()
        # The replaced processes wake up, and what was held arrives; hanging transactions time out.
        events.run(self._is_quiet, until=events.now + 120.0)
        events.run(lambda: False, until=events.now + 15.0)
        judge(self.world.brokers, self._loads, self._concluded, self.verdict)
        self.verdict.calls = sum(each.calls for each in self._processes)
        self.verdict.killed = sum(each.was_killed for each in self._processes)
        self.verdict.stopped = sum(each.paused_until > 0 for each in self._processes)
        return self.verdict

    def _is_quiet(self) -> bool:
        return not self.world.network.under_way and not self._alive

    def _why_stuck(self) -> str:
        failures = [str(each.failures[-1]) for each in self._tasks if each.failures and not each.is_done]
        return "; ".join(failures) or "processes wait for ever"

    # The first step of a run: what an outbox does not use is claimed.

    def _begin(self, number: int) -> None:
        found = self._loads[number]
        self.world.events.note(f"outbox {found.manifest.outbox} is approved")

        def claim() -> None:
            target = self._target()
            self._check_ledger(target)
            # What the gate finds: the outbox before was abandoned, or had another number of shards.
            if not target.claim(
                found.manifest, clears=TOPICS if number > 0 and self.plan.scenario == RESHARDED else None
            ):
                self.world.events.note("superseded")
                self.verdict.outcome = "superseded"
                self._is_over = True
                return
            self._send_all(number)

        self._until_done(f"gate {number + 1}", claim)

    def _until_done(self, name: str, body: Callable[[], None], attempt: int = 0) -> None:
        def guarded() -> None:
            try:
                body()
            except (RetriableError, FencedError) as error:
                self.world.events.note(f"{name} failed: {error}")
                if attempt < _CALM_AFTER_ATTEMPTS:
                    self.world.events.after(1.0, lambda: self._until_done(name, body, attempt + 1))
                else:
                    self._end("stuck", f"{name}: {error}")
            except ContextureError as error:
                self._refuse(name, error)

        self._start(name, guarded, 0.0)

    def _refuse(self, name: str, error: ContextureError) -> None:
        self.world.events.note(f"{name} refused: {type(error).__name__}: {error}")
        if self._was_emptied:
            self.verdict.outcome = "refused"
            self._is_over = True
        else:
            self._end("refused", f"{name}: {type(error).__name__}: {error}")

    def _end(self, kind: str, sentence: str) -> None:
        self.verdict.add(kind, 1, sentence)
        self._is_over = True

    # Tasks.

    def _send_all(self, number: int) -> None:
        found = self._loads[number]
        for shard in found.used:
            fates = self.plan.fates.get((number, shard), ())
            task = _Task(number, found, shard, fates)
            self._tasks.append(task)
            self._attempt(task, fates[0].delay_seconds if fates else 0.0)
        if number == 0 and self.plan.scenario == RESHARDED:
            self.world.events.after(self.plan.abandoned_after, self._abandon)

    def _attempt(self, task: _Task, delay: float) -> None:
        task.attempts += 1
        if task.attempts > _CALM_AFTER_ATTEMPTS:
            self.world.network.calm()
        if task.attempts > _MOST_ATTEMPTS:
            self._end("stuck", f"shard {task.shard}: {task.failures[-1] if task.failures else 'killed'}")
            return
        fate = task.fates[task.attempts - 1] if task.attempts <= len(task.fates) else Fate()
        name = f"o{task.number + 1}/{task.shard}#{task.attempts}"
        process = self._start(name, lambda: self._send(task, name), delay)
        process.dies_at, process.stops_at, process.stops_seconds = fate.dies_at, fate.stops_at, fate.stops_seconds
        process.on_end = lambda ended: self._ended(task, ended)
        task.alive.append(process)
        if fate.replaced_seconds is not None:
            self._watch(task, process, fate.replaced_seconds)

    def _watch(self, task: _Task, process: Process, seconds: float) -> None:
        """Begins another attempt beside one that was stopped: Airflow takes it for dead."""

        def look() -> None:
            if process.paused_until > 0.0 and process.is_alive and not task.is_done:
                self.world.events.after(seconds, lambda: None if self._is_settled(task) else self._attempt(task, 0.0))
            elif process.is_alive:
                self.world.events.after(0.05, look)

        look()

    def _is_settled(self, task: _Task) -> bool:
        return self._is_over or task.is_done or task.is_given_up

    def _send(self, task: _Task, name: str) -> None:
        target = self._target()
        waits = iter(_ATTEMPTS_MS)
        try:
            if task.attempts > 1 and self.plan.begins_anew:
                self._check_ledger(target)
            publish.expect_ledger(self._store, task.load.manifest, target)
            row = publish.shard_row(self._store, task.load.manifest, task.shard)
            expected = row.expected
            row.begin()
            reader, committed = task.load.shards[task.shard], row.noting(lambda entry: None)
            target.send(
                SendRequest(
                    reader, len(task.load.shards), lambda failure: next(waits, None), committed=committed, row=expected
                )
            )
        except ContextureError as error:
            self.world.events.note(f"{name} failed: {type(error).__name__}: {error}")
            task.failures.append(error)
            is_final = isinstance(error, ConfigurationError) and not isinstance(error, FencedError)
            if is_final and not self._is_settled(task):
                self._refuse(name, error)
            return
        self.world.events.note(f"{name} has ended well")
        task.is_done = True
        if not task.is_given_up:
            self.world.events.after(_SEEN_SECONDS, lambda: self._look_for(task, name))

    def _look_for(self, task: _Task, name: str) -> None:
        unseen = missing(self.world.brokers, task.load, task.shard)
        self.verdict.add("unseen", len(unseen), f"{_SEEN_SECONDS:.0f} s after {name} had ended well: {unseen[:4]}")

    def _ended(self, task: _Task, process: Process) -> None:
        self._alive -= 1
        task.alive.remove(process)
        if self._is_over or task.is_given_up:
            return
        if task.is_done:
            self._conclude_if_sent(task.number)
            return
        if task.alive:
            return
        if self.plan.compacts:
            self._compact()
        if self.plan.scenario == EMPTIED and not self._was_emptied:
            self._empty()
        self._attempt(task, _AGAIN_SECONDS * self.world.events.random.random())

    def _conclude_if_sent(self, number: int) -> None:
        mine = [each for each in self._tasks if each.number == number]
        if not all(each.is_done for each in mine) or self._concluded[number]:
            return
        self._concluded[number] = True
        found = self._loads[number]

        def conclude_outbox() -> None:
            letters = _committed(self._store, found.manifest, self._target())
            if letters is None:
                self._end("refused", f"{found.manifest.outbox} was sent, and is taken for superseded")
                return
            self.world.events.note(f"outbox {found.manifest.outbox} is concluded")
            if number == 0 and not self.plan.is_single:
                self._begin(1)
            else:
                self._is_over = True

        self._until_done(f"conclude {number + 1}", conclude_outbox)

    def _abandon(self) -> None:
        """A person gives the first outbox up and changes `publish.shards`; what sends it is not stopped by that."""
        if self._concluded[0] or self._is_over:
            return
        self.world.events.note("the first outbox is abandoned, and publish.shards changed")
        for task in self._tasks:
            task.is_given_up = True
        self._begin(1)

    def _empty(self) -> None:
        topic = self.world.brokers.topics.get(_LEDGER)
        if topic is None or self._is_over:
            return
        self._was_emptied = True
        partitions = topic.partitions if self.plan.emptied == "all" else topic.partitions[:1]
        for partition in partitions:
            partition.delete_before(partition.end)
        self.world.events.note(f"the ledger's records are deleted in {len(partitions)} partitions")

    def _compact(self) -> None:
        topic = self.world.brokers.topics.get(_LEDGER)
        for partition in topic.partitions if topic is not None else ():
            partition.compact()

    # Small things.

    def _target(self) -> KafkaTarget:
        return self._target_of(_SETTINGS, _PUBLICATION, None, lambda sentence: self.world.events.note(f"  {sentence}"))

    def _is_gone(self, process: Process) -> None:
        self._alive -= 1

    def _check_ledger(self, target: KafkaTarget) -> None:
        publish.check_ledger(self._store, target)

    def _start(self, name: str, body: Callable[[], None], delay: float) -> Process:
        process = self.world.process(name, body)
        process.on_end = self._is_gone
        self._alive += 1
        self._processes.append(process)
        process.start(delay)
        return process
