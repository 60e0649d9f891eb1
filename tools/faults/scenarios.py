"""What is done to senders. Each scenario takes a trial and gives its outcome; all of them run beside others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tools.faults.compaction import compacting_ledger
from tools.faults.failing_parts import claim_all, ledger_emptied, let_go
from tools.faults.loads import Load, context_load, registry_load, registry_log
from tools.faults.moments import INSIDE, Moment
from tools.faults.probe import Aim
from tools.faults.supervisor import Ending, SenderProcess
from tools.faults.trial import Outcome, Trial

Scenario = Callable[[Trial], Outcome]

_LOG_ENDS: Final = 14
_SHORT_TIMEOUT_MS: Final = 1_500
# Brokers of the matrix look for outlived transactions every 200 ms.
_PAUSE_SECONDS: Final = 3.0
_TRIES: Final = 40


def killed(trial: Trial) -> Outcome:
    """The senders of one shard are killed, one after the other, while another shard is sent."""
    load = context_load(trial.make_topics(2), outbox="one", shards=2)
    with trial.sender(load.shards[1], shards=2) as other:
        trial.kill_at(load.shards[0], trial.kills_ahead(2), shards=2)
        trial.finish(load.shards[0], shards=2)
        trial.expect(other.ending().error is None, "the other shard's sender failed")
    return trial.outcome(load.records)


def registry_killed(trial: Trial) -> Outcome:
    """The senders of a registry publication are killed: transactions by registry transaction, deletions apart."""
    trial.most_records = 1
    load = registry_load(trial.make_topics(1)[0], registry_log(_LOG_ENDS), outbox="one")
    trial.kill_at(load.shards[0], trial.kills_ahead(2))
    trial.finish(load.shards[0])
    return trial.outcome(load.records)


def paused(trial: Trial) -> Outcome:
    """A sender is stopped for longer than its transaction may stay open; no other one sends."""
    trial.timeout_ms = _SHORT_TIMEOUT_MS
    load = context_load(trial.make_topics(2), outbox="one")
    with trial.sender(load.shards[0], trial.aim()) as sender:
        _pause(trial, sender)
        ending = sender.ending()
    trial.expect(ending.error is None, f"the paused sender ended with {ending.error}: {ending.message}")
    return trial.outcome(load.records)


def paused_and_replaced(trial: Trial) -> Outcome:
    """A sender is stopped for longer than its transaction may stay open, and another one sends meanwhile."""
    trial.timeout_ms = _SHORT_TIMEOUT_MS
    load = context_load(trial.make_topics(2), outbox="one")
    replaced: list[Ending] = []
    with trial.sender(load.shards[0], trial.aim()) as sender:
        _pause(trial, sender, lambda: replaced.append(trial.finish(load.shards[0])))
        ending = sender.ending()
    if trial.cell.moment in INSIDE and not trial.disturbed:
        trial.expect(ending.error == "FencedError", f"the replaced sender ended with {ending}")
    trial.expect(ending.error in {None, "FencedError"}, f"the replaced sender ended with {ending}")
    return trial.outcome(load.records)


def two_senders(trial: Trial) -> Outcome:
    """A second sender of a shard starts while the first one holds somewhere; then both continue."""
    load = context_load(trial.make_topics(2), outbox="one")
    with trial.sender(load.shards[0], trial.aim()) as first:
        first.held()
        with trial.sender(load.shards[0]) as second:
            time.sleep(trial.random.choice([0.0, 0.3, 1.0]))
            if first.last_moment is not Moment.IN_COMMIT:
                first.go()
            endings = (first.ending(), second.ending())
    errors = {ending.error for ending in endings}
    trial.expect(errors <= {None, "FencedError"}, f"the two senders ended with {endings}")
    # Who starts later wins; when both start at once, both may find the other.
    if errors == {"FencedError"}:
        trial.finish(load.shards[0])
    return trial.outcome(load.records)


def two_instances(trial: Trial) -> Outcome:
    """Two instances of a registry publication share only Kafka: each cuts the log otherwise; both are killed."""
    (topic,) = trial.make_topics(1)
    trial.most_records = 1
    whole = registry_load(topic, registry_log(_LOG_ENDS), outbox="whole")
    instances = [_stretches(trial, topic, name) for name in ("here", "there")]
    aims = [[trial.aim(transactions=1)], [trial.aim(trial.random.choice(sorted(INSIDE)), transactions=1)]]
    threads = [
        threading.Thread(target=_run_instance, args=(trial, stretches, list(aim)))
        for stretches, aim in zip(instances, aims, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trial.outcome(whole.records)


def shards_changed(trial: Trial) -> Outcome:
    """An outbox is given up with a sender still somewhere in it, and the next one has another number of shards."""
    topics = trial.make_topics(2)
    before, after = trial.random.choice([(3, 1), (3, 2), (2, 4), (3, 5)])
    old = context_load(topics, outbox="old", sequence=1, shards=before, records=50)
    new = context_load(topics, outbox="new", sequence=2, shards=after, records=50)
    lingering = old.shards[before - 1]
    with trial.sender(lingering, trial.aim(), shards=before) as sender:
        for shard in old.shards[: before - 1]:
            trial.finish(shard, shards=before)
        sender.held()
        if trial.random.random() < 0.5:
            trial.strike(sender)
        _send_next(trial, new)
        ending = _released(sender)
    trial.expect(
        ending.error in {"FencedError", "Killed"} or ending.superseded or trial.cell.moment is Moment.IN_COMMIT,
        f"a sender of the outbox that was given up ended with {ending}",
    )
    cleared = trial.finish(lingering, shards=before)
    trial.expect(not cleared.records_sent, "an outbox was sent after a later one")
    return trial.outcome(new.records, old.records)


def ledger_compacted(trial: Trial) -> Outcome:
    """The ledger is compacted between and during the lives of senders that are killed."""
    load = context_load(trial.make_topics(2), outbox="one", records=160)
    with compacting_ledger(trial.settings, trial.names) as ledger:
        aims = trial.kills_ahead(2)
        for aim in aims:
            # Far enough into the shard that rows before it can be compacted away.
            late = Aim(aim.moment, aim.transaction + 2, aim.record)
            trial.kill_at(load.shards[0], [late])
            # By the last round, senders have left rows that can go.
            ledger.await_round(has_more=aim is aims[-1])
        trial.finish(load.shards[0])
        trial.expect(ledger.removed() > 0, "the ledger was never compacted")
    return trial.outcome(load.records)


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "killed": killed,
    "registry, killed": registry_killed,
    "paused": paused,
    "paused, replaced": paused_and_replaced,
    "two senders": two_senders,
    "two instances": two_instances,
    "shards changed": shards_changed,
    "ledger compacted": ledger_compacted,
    "let go": let_go,
    "ledger emptied": ledger_emptied,
}


def _pause(trial: Trial, sender: SenderProcess, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Stops a sender where it holds, and lets it go on later; notes when it did not stay stopped."""
    if not sender.held():
        trial.problems.append(f"a sender ended before {sender.order.aim}")
        return
    sender.stop()
    if sender.last_moment is not Moment.IN_COMMIT:
        sender.go()
    until = time.monotonic() + _PAUSE_SECONDS
    meanwhile()
    time.sleep(max(0.0, until - time.monotonic()))
    if not sender.resume():
        trial.disturbed = "a sender ran on that was to be stopped: this run shows nothing of a pause"


def _released(sender: SenderProcess) -> Ending:
    if sender.last_moment is not None and sender.is_alive and sender.last_moment is not Moment.IN_COMMIT:
        sender.go()
    return sender.ending()


def _send_next(trial: Trial, load: Load) -> None:
    """As quality_gate and publish do: claims all shards, because their number changed, then sends the outbox."""
    claim_all(trial, load)
    for shard in load.shards:
        trial.finish(shard, shards=len(load.shards))


def _stretches(trial: Trial, topic: str, name: str) -> list[Load]:
    """The log in the stretches that one instance staged."""
    log, first = registry_log(_LOG_ENDS), 1
    loads: list[Load] = []
    while first <= _LOG_ENDS:
        last = first + trial.random.randint(0, 4)
        part = [change for change in log if first <= change.id <= last]
        loads.append(registry_load(topic, part, outbox=f"{name}-{first}", sequence=len(loads) + 1))
        first = last + 1
    return loads


def _run_instance(trial: Trial, stretches: Sequence[Load], aims: list[Aim]) -> None:
    """Sends one stretch after the other, each until it succeeds."""
    for load in stretches:
        for _ in range(_TRIES):
            with trial.sender(load.shards[0], aims[0] if aims else None) as sender:
                if aims and sender.held():
                    aims.pop(0)
                    trial.strike(sender)
                    continue
                ending = sender.ending()
            if ending.error is None:
                break
            trial.expect(ending.error == "FencedError", f"an instance ended with {ending}")
        else:
            trial.problems.append(f"an instance did not come to an end in {_TRIES} tries")
