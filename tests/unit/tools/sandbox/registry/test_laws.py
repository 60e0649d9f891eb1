"""What holds after any submissions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from builders.registry import START_MS, Client, codelist, codelists, urn
from contexture_sandbox.registry.model import Action
from contexture_sandbox.registry.refusals import Refusal

NAMES = some.sampled_from(["CL_A", "CL_B", "CL_C", "CL_D"])
ACTIONS: some.SearchStrategy[Action] = some.sampled_from(["Append", "Merge", "Replace", "FullReplace", "Delete"])
SUBMISSIONS = some.lists(some.tuples(ACTIONS, some.sets(NAMES, min_size=1), some.sampled_from(["A", "B"])), max_size=8)


@given(SUBMISSIONS)
def test_who_follows_the_log_has_what_the_registry_has_at_every_moment(
    submissions: list[tuple[Action, set[str], str]],
):
    client = Client()
    replicas: list[set[str]] = [set()]
    for action, names, code in submissions:
        client.later(1)
        message = codelists(*(codelist(name, "1.0", code) for name in sorted(names)))
        try:
            done = client.submit(message, action=action)
        except Refusal:
            done = None
        changed = (replicas[-1] | {*done.added, *done.modified}) - {*done.deleted} if done else replicas[-1]
        replicas.append(changed)
    store = client.registry.store
    assert store.current().keys() == replicas[-1]
    for second, replica in enumerate(replicas):
        assert store.as_of(START_MS + second * 1000 + 500).keys() == replica


@given(SUBMISSIONS)
def test_a_transaction_names_each_structure_once(submissions: list[tuple[Action, set[str], str]]):
    client = Client()
    for action, names, code in submissions:
        before = client.registry.store.current().keys()
        message = codelists(*(codelist(name, "1.0", code) for name in sorted(names)))
        try:
            done = client.submit(message, action=action)
        except Refusal:
            assert client.registry.store.current().keys() == before
            continue
        assert len(set(done.urns)) == len(done.urns)
        assert not before & {*done.added}
        assert before >= {*done.modified, *done.deleted}
        assert {*done.urns} >= {urn(name) for name in names}
