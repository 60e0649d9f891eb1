"""librdkafka's transactional producer, as far as a sender can see of it.

What it does without a word is the point: requests whose connection is lost are sent again, EndTxn among them, and a
commit returns well as if nothing had happened.
"""

from __future__ import annotations

import zlib
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from tools.simulation.network import Request
from tools.simulation.partitions import Batch, Headers

if TYPE_CHECKING:
    from tools.simulation.clients import World

Place = tuple[str, int]

_BACKOFF_SECONDS = 0.1
_LINGER_SECONDS = 0.005
_RETRIABLE = frozenset({"NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE"})
_FENCED = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
_COORDINATOR = "coordinator"
# Of a ledger's row, up to before its time.
_SHOWN = 70


def kafka_error(name: str, *, fatal: bool = False, retriable: bool = False, abortable: bool = False) -> KafkaError:
    """Returns the client's error of a name."""
    return KafkaError(getattr(KafkaError, name), f"simulated {name}", fatal, retriable, abortable)


class DeliveryReport:
    """What a delivery callback gets."""

    def __init__(self, topic: str, error: KafkaError | None) -> None:
        self._topic, self._error = topic, error

    def topic(self) -> str:
        """Returns where the record was to go."""
        return self._topic

    def error(self) -> KafkaError | None:
        """Why it did not."""
        return self._error


class _Record:
    __slots__ = ("callback", "headers", "key", "place", "value")

    def __init__(self, place: Place, key: Any, value: Any, headers: Headers, callback: Any) -> None:
        self.place, self.key, self.value, self.headers, self.callback = place, key, value, headers, callback


class SimulatedProducer:
    """In the place of `confluent_kafka.Producer`.

    Args:
        world: the run.
        options: of the client; the callbacks among them.
    """

    def __init__(self, world: World, options: dict[str, Any]) -> None:
        process = world.events.current
        assert process is not None
        self._world = world
        self._process = process
        self._name = str(options["transactional.id"])
        self._timeout = float(options.get("transaction.timeout.ms", 60_000)) / 1000
        self._most = min(int(options.get("batch.num.messages", 10_000)), world.batch_records)
        self._on_delivery = options.get("on_delivery")
        self._only_errors = bool(options.get("delivery.report.only.error", False))
        self._logger = options.get("logger")
        self._debugs = "eos" in str(options.get("debug", "")) or "all" in str(options.get("debug", ""))
        self._id, self._epoch = -1, -1
        self._is_initialised = False
        self._initialising = False
        self._queues: defaultdict[Place, deque[_Record]] = defaultdict(deque)
        self._in_flight: dict[Place, list[_Record]] = {}
        self._sequences: defaultdict[Place, int] = defaultdict(int)
        self._registered: set[Place] = set()
        self._registering: set[Place] = set()
        self._is_asking = False
        self._state = "ready"
        self._end: str | None = None  # The answer to EndTxn.
        self._fatal: KafkaError | None = None
        self._has_unreported_fatal = False
        self._abortable: KafkaError | None = None
        self._reports: deque[tuple[_Record, KafkaError | None]] = deque()
        self._is_gone = False
        world.replace_producer(process, self._name, self)

    # What a sender calls.

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Returns the topics there are."""
        self._process.call(f"list_topics({topic or ''})")
        return self._world.metadata(topic)

    def init_transactions(self, timeout: float = -1) -> None:
        """Fences earlier producers of the transactional id."""
        self._process.call(f"init_transactions of {self._name}")
        self._raise_fatal()
        if not self._is_initialised and not self._initialising:
            self._initialising = True
            self._ask_id()
        if not self._process.wait(lambda: self._is_initialised or self._fatal is not None, timeout):
            raise KafkaException(kafka_error("_TIMED_OUT", retriable=True))
        self._raise_fatal()

    def begin_transaction(self) -> None:
        """Local: brokers hear of a transaction with its first partition."""
        self._raise_fatal()
        self._state, self._end, self._abortable = "open", None, None
        self._registered, self._registering = set(), set()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callable[..., None] | None = None,
        on_delivery: Callable[..., None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Puts a record into the queue; a thread of the client's own sends it."""
        del timestamp
        self._process.call(f"produce to {topic}", self._world.produce_seconds)
        self._raise_fatal()
        if self._state != "open" or self._abortable is not None:
            raise KafkaException(kafka_error("_STATE"))
        found = self._world.brokers.topics.get(topic)
        if found is None:
            raise KafkaException(kafka_error("_UNKNOWN_TOPIC"))
        if partition < 0:
            partition = zlib.crc32(key or b"") % len(found.partitions)
        place = (topic, partition)
        self._queues[place].append(_Record(place, key, value, tuple(headers or ()), callback or on_delivery))
        self._pump()

    def poll(self, timeout: float = 0) -> int:
        """Serves callbacks."""
        if timeout > 0:
            self._process.call("poll")
            self._process.wait(lambda: bool(self._reports) or self._has_unreported_fatal, timeout)
        count = self._serve()
        self._report_fatal()
        return count

    def flush(self, timeout: float = -1) -> int:
        """Waits until everything is delivered."""
        self._process.call("flush")
        self._process.wait(lambda: not len(self) or self._has_failed(), 60.0 if timeout < 0 else timeout)
        self._serve()
        self._report_fatal()
        return len(self)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Delivers what is queued, and ends the transaction."""
        self._process.call("commit_transaction")
        if self._state == "committed":
            return
        until = self._world.events.now + timeout
        if self._state == "open":
            self._raise_failed()
            if not self._process.wait(lambda: not len(self) or self._has_failed(), timeout):
                self._serve()
                raise KafkaException(kafka_error("_TIMED_OUT", retriable=True))
            self._serve()
            self._raise_failed()
            self._state = "committing"
            if self._registered:
                self._send_end(commits=True)
            else:
                self._end = "NO_ERROR"
        self._await_end(max(0.0, until - self._world.events.now), "committed")

    def abort_transaction(self, timeout: float = -1) -> None:
        """Throws away what is queued, and ends the transaction."""
        self._process.call("abort_transaction")
        self._raise_fatal()
        until = self._world.events.now + timeout
        if self._state in {"open", "committing"}:
            self.purge()
            if not self._process.wait(lambda: not self._in_flight or self._fatal is not None, timeout):
                raise KafkaException(kafka_error("_TIMED_OUT", retriable=True))
            self._raise_fatal()
            if self._state == "committing":
                # A commit whose outcome no one knows: the client refuses to abort it.
                raise KafkaException(kafka_error("_STATE"))
            self._state = "aborting"
            self._abortable = None
            if self._registered or self._registering:
                self._send_end(commits=False)
            else:
                self._end = "NO_ERROR"
        self._await_end(max(0.0, until - self._world.events.now), "aborted")

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Throws away what has not left."""
        for queue in self._queues.values():
            queue.clear()

    def __len__(self) -> int:
        queued = sum(map(len, self._queues.values())) if self._queues else 0
        return queued + sum(map(len, self._in_flight.values()))

    def destroy(self) -> None:
        """The object is gone, and with it the client's threads."""
        self._is_gone = True

    # What its threads do.

    def _send(self, kind: str, target: object, detail: str, handle: Any, answered: Any, lost: Any) -> None:
        def unless_gone(act: Callable[..., None]) -> Callable[..., None]:
            return lambda *arguments: None if self._is_gone else act(*arguments)

        self._world.network.send(
            Request(
                self._process,
                (id(self), target),
                kind,
                detail,
                handle,
                unless_gone(answered),
                unless_gone(lost),
            )
        )

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        owned = self._process.owns(lambda: None if self._is_gone else act())
        self._world.events.after(seconds, owned)

    def _ask_id(self) -> None:
        def again() -> None:
            self._later(_BACKOFF_SECONDS, self._ask_id)

        def answered(answer: tuple[str, int, int]) -> None:
            error, number, epoch = answer
            if error == "CONCURRENT_TRANSACTIONS":
                again()
                return
            self._id, self._epoch, self._is_initialised = number, epoch, True
            self._process.wake()

        coordinator = self._world.brokers.coordinator
        self._send(
            "InitProducerId",
            _COORDINATOR,
            self._name,
            lambda: coordinator.init_producer(self._name, self._timeout),
            answered,
            again,
        )

    def _pump(self) -> None:
        """Registers partitions with the coordinator, and sends what may be sent."""
        fresh = {place for place, queue in self._queues.items() if queue} - self._registered - self._registering
        if fresh:
            self._registering |= fresh
        if self._registering and not self._is_asking:
            self._is_asking = True
            self._later(_LINGER_SECONDS * self._world.events.random.random(), self._register)
        for place in sorted(self._registered):
            if self._queues[place] and place not in self._in_flight:
                rows = self._queues[place]
                self._in_flight[place] = [rows.popleft() for _ in range(min(len(rows), self._most))]
                self._deliver(place)

    def _register(self) -> None:
        asked = set(self._registering)
        if not asked or self._state not in {"open", "committing"}:
            self._is_asking = False
            return

        def again() -> None:
            self._later(_BACKOFF_SECONDS * 0.2, self._register)

        def answered(error: str) -> None:
            if error == "CONCURRENT_TRANSACTIONS":
                again()
                return
            self._is_asking = False
            if error in _FENCED:
                self._fail_fatally("_FENCED")
            elif error != "NO_ERROR":
                self._fail(kafka_error(error, abortable=True))
            else:
                self._registered |= asked
                self._registering -= asked
                self._pump()

        coordinator = self._world.brokers.coordinator
        producer, epoch = self._id, self._epoch
        self._send(
            "AddPartitionsToTxn",
            _COORDINATOR,
            f"{producer}/{epoch} {sorted(asked)}",
            lambda: coordinator.add_partitions(self._name, producer, epoch, asked),
            answered,
            again,
        )

    def _deliver(self, place: Place) -> None:
        rows = self._in_flight.get(place)
        if rows is None:
            return
        first = self._sequences[place]
        batch = Batch(self._id, self._epoch, first, [(row.key, row.value, row.headers) for row in rows])

        def again() -> None:
            self._later(_BACKOFF_SECONDS, lambda: self._deliver(place))

        def answered(error: str) -> None:
            if error in _RETRIABLE:
                again()
                return
            self._in_flight.pop(place, None)
            if error == "NO_ERROR":
                self._sequences[place] += len(rows)
                if not self._only_errors:
                    self._reports.extend((row, None) for row in rows)
            else:
                is_fenced = error in _FENCED
                failure = kafka_error("_FENCED" if is_fenced else error, fatal=is_fenced, abortable=not is_fenced)
                self._reports.extend((row, failure) for row in rows)
                if is_fenced:
                    self._fail_fatally("_FENCED")
                else:
                    self._fail(failure)
            self._pump()
            self._process.wake()

        self._send(
            "Produce",
            place,
            self._describe(place, rows),
            lambda: self._world.brokers.produce(place, batch),
            answered,
            again,
        )

    def _describe(self, place: Place, rows: list[_Record]) -> str:
        if not self._world.events.is_traced:
            return ""
        return f"{self._id}/{self._epoch} {place[0]}[{place[1]}] {[row.value and row.value[:_SHOWN] for row in rows]}"

    def _send_end(self, *, commits: bool) -> None:
        producer, epoch = self._id, self._epoch

        def again(name: str) -> None:
            self._log(name)
            self._later(_BACKOFF_SECONDS * 0.5, lambda: self._send_end(commits=commits))

        def answered(error: str) -> None:
            if error == "CONCURRENT_TRANSACTIONS":
                again(error)
                return
            self._log(error)
            if error in _FENCED:
                self._fail_fatally("_FENCED")
            elif error == "INVALID_TXN_STATE":
                self._fail_fatally(error)
            elif error != "NO_ERROR":
                self._fail(kafka_error(error, abortable=True))
            self._end = error
            self._process.wake()

        self._send(
            "EndTxn",
            _COORDINATOR,
            f"{producer}/{epoch} {'commit' if commits else 'abort'}",
            lambda: self._world.brokers.end(self._name, producer, epoch, commits=commits),
            answered,
            lambda: again("_TRANSPORT"),
        )

    def _log(self, error: str) -> None:
        if self._debugs and self._logger is not None:
            # As librdkafka 2.16 says it with `debug=eos`.
            state = "CommittingTransaction" if self._state == "committing" else "AbortingTransaction"
            text = f"EndTxn returned {error} in state {state} (may_retry=true)"
            self._logger.log(7, "%s [%s] %s", "ENDTXN", self._name, text)

    def _await_end(self, seconds: float, state: str) -> None:
        if not self._process.wait(lambda: self._end is not None, seconds):
            raise KafkaException(kafka_error("_TIMED_OUT", retriable=True))
        self._raise_failed()
        self._state = state

    def _fail(self, error: KafkaError) -> None:
        self._abortable = self._abortable or error
        self._process.wake()

    def _fail_fatally(self, name: str) -> None:
        if self._fatal is None:
            self._fatal, self._has_unreported_fatal = kafka_error(name, fatal=True), True
        self._process.wake()

    def _report_fatal(self) -> None:
        """The client raises a fatal error once, by whatever call serves callbacks."""
        if self._has_unreported_fatal:
            self._has_unreported_fatal = False
            raise KafkaException(self._fatal)

    def _has_failed(self) -> bool:
        return self._fatal is not None or self._abortable is not None

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise KafkaException(self._fatal)

    def _raise_failed(self) -> None:
        self._raise_fatal()
        if self._abortable is not None:
            raise KafkaException(self._abortable)

    def _serve(self) -> int:
        count = len(self._reports)
        while self._reports:
            row, error = self._reports.popleft()
            callback = row.callback or self._on_delivery
            if callback is not None:
                callback(error, DeliveryReport(row.place[0], error))
        return count
