"""Any order of submissions, deletions, runs, crashes and restarts ends with a replica that is equal to the registry.

Reading, preparing, sending and concluding are real; the registry, Kafka and Spark's tasks are in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import registrations
from builders.registry import urn
from builders.replica_world import Crashed, World
from builders.structure_runs import registry_publication
from contexture.errors import ConfigurationError

URNS = [urn(name, version) for name in ("CL_A", "CL_B") for version in ("1.0", "2.0")] + [urn("CL_C")]
REGISTRATIONS = [registrations.urn(f"r{number}", agency) for number in range(4) for agency in ("ECB", "BIS")]
CRASHES = ["", "", "settled", "pulled", "prepared", "before commit", "after commit", "sent"]
ROUTES = [
    {"topics": ["structures"]},
    {"topics": ["one", "two"], "routes": [{"select": "Codelist=X:CL_A(*)", "topics": ["a-{agency}"]}]},
]


class Submitted(NamedTuple):
    """A transaction of the registry."""

    lists: dict[str, tuple[str, ...]]
    deleted: set[str]


class Run(NamedTuple):
    """A run of one instance, and where it is killed."""

    instance: int
    mode: str
    crash: str
    commits: int


class Forgotten(NamedTuple):
    """The registry forgets all but the last transactions of its log."""

    but: int


FORGETTING = st.builds(Forgotten, st.integers(0, 2))
SUBMISSIONS = st.builds(
    Submitted,
    st.dictionaries(st.sampled_from(URNS), st.sampled_from([("x",), ("y",), ("z", "y")]), max_size=3),
    st.sets(st.sampled_from(URNS), max_size=2),
)


REGISTERED = st.builds(
    Submitted,
    st.dictionaries(st.sampled_from(REGISTRATIONS), st.sampled_from([("http://x",), ("http://y",)]), max_size=5),
    st.sets(st.sampled_from(REGISTRATIONS), max_size=3),
)


def runs(instances: int, *modes: str) -> st.SearchStrategy[Run]:
    return st.builds(
        Run,
        st.integers(0, instances - 1),
        st.sampled_from(modes),
        st.sampled_from(CRASHES),
        st.integers(0, 2),
    )


def histories(instances: int, *modes: str) -> st.SearchStrategy[list[Submitted | Run | Forgotten]]:
    return st.lists(SUBMISSIONS | runs(instances, *modes) | FORGETTING, max_size=9)


def happen(world: World, run: Run) -> None:
    """A run, or one for each outbox that holds something back."""
    instance = world.instances[run.instance]
    if run.mode == "retry":
        lenient = registry_publication(source=SHRINKING, quality=LENIENT)
        instance.retry(lenient, crash=run.crash, commits=run.commits)
    else:
        instance.run(run.mode, crash=run.crash, commits=run.commits)


def live(world: World, history: list[Submitted | Run | Forgotten]) -> None:
    """Everything happens, and in the end every instance has a run that is not killed."""
    world.registry.submit({urn("CL_KEPT"): ("x",)})
    for instance in world.instances:
        instance.run("full")
    world.began()
    for each in history:
        if isinstance(each, Submitted):
            there = world.registry.now
            deleted = sorted(name for name in each.deleted if name in there and name not in each.lists)
            if each.lists or deleted:
                world.registry.submit(each.lists, delete=deleted)
        elif isinstance(each, Forgotten):
            world.registry.forgotten = max(world.registry.forgotten, len(world.registry.log) - each.but)
        else:
            with suppress(Crashed):
                happen(world, each)
    for instance in world.instances:
        instance.run("changes")


SHRINKING = {"kind": "sdmx", "connection": "registry", "shrink_limit": {"share": 1.0, "count": 10}}
EXAMPLES = pytest.mark.parametrize(
    "examples", [6, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)


def law(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Settings of a law; each example is some runs, of some tenths of a second."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EXAMPLES
def test_the_replica_of_one_instance_equals_the_registry(examples: int) -> None:
    @law(examples)
    @given(histories(1, "changes", "changes", "full"), st.sampled_from(ROUTES))
    def holds(history: list[Any], topics: dict[str, Any]) -> None:
        with TemporaryDirectory() as home:
            world = World(Path(home), topics=topics)
            live(world, history)
            assert world.replica() == world.expected()

    holds()


@EXAMPLES
def test_so_does_that_of_two_instances_that_share_only_kafka(examples: int) -> None:
    @law(examples)
    @given(histories(2, "changes", "changes", "full"))
    def holds(history: list[Any]) -> None:
        with TemporaryDirectory() as home:
            world = World(Path(home), instances=2)
            live(world, history)
            assert world.replica() == world.expected()

    holds()


@EXAMPLES
def test_two_instances_publish_each_transaction_of_the_registry_once_and_in_its_order(examples: int) -> None:
    @law(examples)
    @given(histories(2, "changes"))
    def holds(history: list[Any]) -> None:
        with TemporaryDirectory() as home:
            world = World(Path(home), instances=2)
            live(world, history)
            sent = [(transaction, deletes) for transaction, deletes, _ in world.sent_transactions()]
            assert sent == sorted(set(sent))

    holds()


@EXAMPLES
def test_the_replica_of_a_registry_without_a_log_equals_it_too(examples: int) -> None:
    @law(examples)
    @given(histories(1, "changes", "changes", "full"))
    def holds(history: list[Any]) -> None:
        with TemporaryDirectory() as home:
            world = World(Path(home), has_log=False, source=SHRINKING)
            live(world, history)
            assert world.replica() == world.expected()

    holds()


STRICT, LENIENT = (
    {"rules": {"duplicate-item": severity}, "max_quarantined_share": 1.0} for severity in ("error", "off")
)
DOUBTFUL = st.builds(
    Submitted,
    st.dictionaries(st.sampled_from(URNS), st.sampled_from([("x",), ("y",), ("z", "z"), ("x", "x")]), max_size=3),
    st.sets(st.sampled_from(URNS), max_size=2),
)


@EXAMPLES
@pytest.mark.parametrize("has_log", [True, False])
def test_what_a_rule_refused_is_there_once_it_was_tried_again(examples: int, has_log: bool) -> None:
    @law(examples)
    @given(st.lists(DOUBTFUL | runs(1, "changes", "changes", "full", "retry"), max_size=9))
    def holds(history: list[Any]) -> None:
        with TemporaryDirectory() as home:
            world = World(Path(home), has_log=has_log, source=SHRINKING, quality=STRICT)
            live(world, history)
            (instance,) = world.instances
            instance.retry(registry_publication(source=SHRINKING, quality=LENIENT))
            assert world.replica() == world.expected()
            assert (instance.quarantined(), instance.withheld()) == (0, [])

    holds()


def test_what_another_instance_published_later_is_never_undone_by_a_retry(tmp_path: Path) -> None:
    world = World(tmp_path, instances=2, quality=STRICT)
    first, second = world.instances
    world.registry.submit({urn("CL_KEPT"): ("x",)})
    first.run("full")
    second.run("full")
    world.registry.submit({urn("CL_A"): ("z", "z"), urn("CL_B"): ("z", "z")})
    first.run("changes")
    with suppress(Crashed):
        first.retry(registry_publication(quality=LENIENT), crash="prepared")

    world.registry.submit({urn("CL_A"): ("y",)})
    second.run("changes")
    first.run("changes")

    assert world.replica()["structures"][urn("CL_A")] == world.registry.message(urn("CL_A"))
    assert urn("CL_B") not in world.replica()["structures"]
    first.retry(registry_publication(quality=LENIENT))
    assert world.replica() == world.expected()


@pytest.mark.parametrize("lie", ["unlisted", "withheld", "denied"])
def test_a_registry_that_answers_half_causes_no_tombstone(tmp_path: Path, lie: str) -> None:
    world = World(tmp_path, has_log=False)
    world.registry.submit({urn(f"CL_{number}"): ("x",) for number in range(20)})
    (instance,) = world.instances
    instance.run("full")
    before = world.replica()

    getattr(world.registry, lie).update(urn(f"CL_{number}") for number in range(10))
    with suppress(Exception):
        instance.run("full")

    assert world.replica() == before
    assert all(sent.value is not None for sent in world.cluster.committed)


def test_a_registry_that_loses_more_than_may_be_causes_no_tombstone(tmp_path: Path) -> None:
    world = World(tmp_path, has_log=False)
    lists = [urn(f"CL_{number}") for number in range(40)]
    world.registry.submit(dict.fromkeys(lists, ("x",)))
    (instance,) = world.instances
    instance.run("full")

    world.registry.submit({}, delete=lists[:20])
    with pytest.raises(ConfigurationError, match="20 are gone of the 40 structures"):
        instance.run("changes")

    assert all(sent.value is not None for sent in world.cluster.committed)


@EXAMPLES
def test_data_registrations_are_replicated_too_whether_the_log_names_them_or_not(examples: int) -> None:
    @law(examples)
    @given(
        st.lists(SUBMISSIONS | REGISTERED | runs(2, "changes", "changes", "full"), max_size=9),
        st.booleans(),
        st.booleans(),
    )
    def holds(history: list[Any], has_log: bool, hides: bool) -> None:
        with TemporaryDirectory() as home:
            source = {**SHRINKING, "registrations": True}
            world = World(Path(home), instances=2 if has_log else 1, has_log=has_log, source=source)
            world.registry.hides_registrations = hides
            live(world, [each for each in history if not isinstance(each, Run) or has_log or not each.instance])
            assert world.replica() == world.expected()

    holds()
