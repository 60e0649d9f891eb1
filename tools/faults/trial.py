"""One run of the matrix: its seed, its topics and senders, and what came of it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from contexture.kafka.settings import ClientSettings
from contexture.kafka.topics import TopicSpec, ensure_topics
from contexture.sending.ledger import SenderNames
from contexture.sending.resume import ExpectedRow
from contexture.sending.testing import MemoryShard
from tools.faults.follower import Follower
from tools.faults.history import prove
from tools.faults.loads import Expected
from tools.faults.moments import INSIDE, Moment
from tools.faults.probe import Aim
from tools.faults.reading import read_topics
from tools.faults.sender import SendOrder
from tools.faults.supervisor import Ending, SenderProcess
from tools.faults.verdict import Verdict

# How long a sender lives on at the moment before it is killed: its client's own threads go on meanwhile.
_JITTER_SECONDS = 0.02
# A commit takes some 3 ms, and a kill takes a while to arrive.
_COMMIT_SECONDS = 0.001
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Cell:
    """What is tried in a run: a scenario at a moment; number and seed make it repeatable."""

    number: int
    scenario: str
    moment: Moment
    seed: int

    def random(self) -> random.Random:
        """Returns the run's own source of chance."""
        return random.Random(f"{self.seed}/{self.number}/{self.scenario}/{self.moment}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        cell: which run.
        verdict: what the reader found wrong.
        kills: at which moments senders were killed, by the senders' own words.
        problems: what else was not as it must be, such as a sender that ended otherwise.
        seconds: how long it took.
        disturbed: why the run shows less than it was to show; empty when nothing came between.
        cuts: how often the follower looked at all partitions.
    """

    cell: Cell
    verdict: Verdict
    kills: Mapping[Moment, int]
    problems: tuple[str, ...]
    seconds: float
    disturbed: str = ""
    cuts: int = 0

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return self.verdict.is_clean and not self.problems

    @property
    def kills_inside(self) -> int:
        """Kills between the first record of a transaction and its commit."""
        return sum(count for moment, count in self.kills.items() if moment in INSIDE)


@dataclass
class Trial:
    """A run while it goes on.

    Args:
        cell: which run.
        bootstrap: the Kafka.
        kills: at which moments senders were killed.
        problems: what was not as it must be.
        timeout_ms: how long a transaction may stay open.
        most_records: after how many records of a transaction a sender holds at most.
        disturbed: what came between, from outside of the run.
        further: settings of the senders' clients, beside the address and the time-out.
        replicas: of the run's topics.
    """

    cell: Cell
    bootstrap: str
    kills: Counter[Moment] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    timeout_ms: int = _TIMEOUT_MS
    most_records: int = 6
    disturbed: str = ""
    further: Mapping[str, str | int] = field(default_factory=dict)
    replicas: int = 1

    def __post_init__(self) -> None:
        self.random = self.cell.random()
        self.publication = f"run-{self.cell.seed}-{self.cell.number}"
        self.topics: tuple[str, ...] = ()
        self._follower: Follower | None = None
        self._started = time.monotonic()

    @property
    def client(self) -> dict[str, str | int]:
        """The extra of the connection."""
        return {"bootstrap.servers": self.bootstrap, "transaction.timeout.ms": self.timeout_ms, **self.further}

    @property
    def settings(self) -> ClientSettings:
        """The same for clients in this process."""
        return ClientSettings.from_extra(self.client)

    @property
    def names(self) -> SenderNames:
        """The transactional ids and the ledger."""
        return SenderNames(self.publication)

    def make_topics(self, count: int, partitions: int = 2) -> tuple[str, ...]:
        """New topics of this run."""
        self.topics = tuple(f"{self.publication}.{number}" for number in range(count))
        ensure_topics(self.settings, [TopicSpec(topic, partitions, self.replicas) for topic in self.topics])
        self._follower = Follower(self.bootstrap, self.topics)
        self._follower.start()
        return self.topics

    def aim(self, moment: Moment | None = None, *, transactions: int = 3) -> Aim:
        """Returns an aim at the run's moment, or another, in one of a sender's first transactions."""
        record = self.random.randint(1, self.most_records)
        return Aim(moment or self.cell.moment, self.random.randrange(transactions), record)

    def sender(
        self,
        shard: MemoryShard,
        aim: Aim | None = None,
        *,
        shards: int = 1,
        gives_up: Aim | None = None,
        row: ExpectedRow = ExpectedRow.NONE,
    ) -> SenderProcess:
        """Returns a new sender of a shard; it holds at an aim, or gives up one transaction."""
        if aim is not None and aim.moment in {Moment.BEFORE_INIT, Moment.AFTER_INIT}:
            aim = Aim(aim.moment)
        return SenderProcess(SendOrder(self.client, self.publication, shard, shards, aim, gives_up=gives_up, row=row))

    def kill(self, sender: SenderProcess) -> None:
        """Waits until a sender holds at its aim, and kills it soon after."""
        if not sender.held():
            self.problems.append(f"a sender ended before {sender.order.aim}: {sender.ending()}")
        else:
            self.strike(sender)

    def strike(self, sender: SenderProcess) -> None:
        """Kills a sender that holds, after a random moment; counts it by the moment that it reported last."""
        within_commit = sender.last_moment is Moment.IN_COMMIT
        time.sleep(self.random.uniform(0, _COMMIT_SECONDS if within_commit else _JITTER_SECONDS))
        moment = sender.kill()
        if moment is not None:
            self.kills[moment] += 1
        self.cut()

    def kill_at(self, shard: MemoryShard, aims: Sequence[Aim], *, shards: int = 1) -> None:
        """Starts senders of a shard one after the other and kills each at its aim."""
        for aim in aims:
            with self.sender(shard, aim, shards=shards) as sender:
                self.kill(sender)

    def kills_ahead(self, further: int) -> list[Aim]:
        """Returns the run's aim, then further ones inside transactions."""
        inside = sorted(INSIDE)
        return [self.aim(), *(self.aim(self.random.choice(inside), transactions=2) for _ in range(further))]

    def finish(self, shard: MemoryShard, *, shards: int = 1) -> Ending:
        """Sends the rest of a shard; it must succeed."""
        with self.sender(shard, shards=shards) as sender:
            ending = sender.ending()
        self.expect(ending.error is None, f"the last sender ended with {ending.error}: {ending.message}")
        return ending

    def expect(self, holds: bool, otherwise: str) -> None:
        """Notes a problem unless something holds."""
        if not holds:
            self.problems.append(otherwise)

    def cut(self) -> None:
        """Has the follower look at all partitions now."""
        if self._follower is not None:
            self._follower.cut()

    def outcome(self, required: Sequence[Expected], allowed: Sequence[Expected] = ()) -> Outcome:
        """Reads the topics back and judges, by what was followed too."""
        if self._follower is None:
            raise ValueError("a trial has no topics: call make_topics first")
        records = read_topics(self.bootstrap, self.topics)
        last = self._follower.cut()
        self._follower.close()
        self.expect(last is not None and last.is_settled, "the last cut of the follower is not settled")
        history = self._follower.history
        verdict = prove(history, records, required, allowed)
        seconds, cuts = time.monotonic() - self._started, len(history.cuts)
        return Outcome(self.cell, verdict, dict(self.kills), tuple(self.problems), seconds, self.disturbed, cuts)


@contextmanager
def failing_loudly(cell: Cell) -> Iterator[None]:
    """Says which run an exception belongs to."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in run {cell.number}: {cell.scenario}, {cell.moment} (seed {cell.seed})")
        raise
