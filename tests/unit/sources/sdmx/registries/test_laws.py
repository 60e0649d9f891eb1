"""Whatever goes wrong with a registry, none of its answers says that something is gone that it holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.registries import AT_ONCE, ML_2_1, START, connection
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from contexture.sources.http.errors import RegistryUnavailableError
from contexture.sources.sdmx.registry import Reply, open_registry
from contexture_sandbox.faults import Fault
from contexture_sandbox.registry import TestRegistry
from contexture_sandbox.registry.model import Face

pytestmark = pytest.mark.slow

FAULTS = st.lists(
    st.builds(
        Fault,
        st.sampled_from(["status", "page", "drop", "truncate", "empty", "half"]),
        nth=st.integers(1, 6),
        times=st.sampled_from([1, 2, 4, None]),
    ),
    min_size=1,
    max_size=3,
)
ONE = st.sampled_from([SEX, EXR, urn("CL_0")])
RARELY = settings(max_examples=25, deadline=None)


def filled(face: Face) -> Iterator[TestRegistry]:
    with TestRegistry(face) as running:
        running.store.clock.freeze(START)
        running.submit(SEX_AND_FLOW)
        running.submit(codelists(*(codelist(f"CL_{number}") for number in range(5))))
        running.delete([urn("CL_4")])
        running.store.clock.advance(600)
        yield running


@pytest.fixture(scope="module")
def fmr() -> Iterator[TestRegistry]:
    yield from filled("fmr")


@pytest.fixture(scope="module")
def plain() -> Iterator[TestRegistry]:
    yield from filled("plain")


def check_one(server: TestRegistry, base: str, faults: list[Fault], one: str) -> None:
    server.faults.clear()
    with (
        open_registry(connection(server.url + base), budget=AT_ONCE) as registry,
        tempfile.TemporaryDirectory() as to,
    ):
        for fault in faults:
            server.faults.plan(fault)
        with suppress(RegistryUnavailableError):
            assert isinstance(registry.read_one(one, ML_2_1, Path(to) / "reply"), Reply)


@RARELY
@given(faults=FAULTS, one=ONE)
def test_no_fmr_says_that_something_is_gone_that_it_holds(fmr: TestRegistry, faults: list[Fault], one: str):
    check_one(fmr, "", faults, one)


@RARELY
@given(faults=FAULTS, one=ONE)
def test_no_registry_says_that_something_is_gone_that_it_holds(plain: TestRegistry, faults: list[Fault], one: str):
    check_one(plain, "/rest", faults, one)


@RARELY
@given(faults=FAULTS, after=st.integers(1, 2))
def test_no_transaction_of_a_log_is_ever_left_out(fmr: TestRegistry, faults: list[Fault], after: int):
    fmr.faults.clear()
    with open_registry(connection(fmr.url), budget=AT_ONCE) as registry:
        for fault in faults:
            fmr.faults.plan(fault)
        try:
            log = registry.transactions(after)
        except RegistryUnavailableError:
            return
    known = {each.id for each in log.transactions} | set(range(after + 1, (log.gap_until or after) + 1))
    assert known == set(range(after + 1, 4))
