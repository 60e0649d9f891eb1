"""The guard against taking a broken read for a mass deletion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.records.changes import ShrinkGuard

GUARD = ShrinkGuard(share=0.2, count=10)


@pytest.mark.parametrize(("held", "limit"), [(0, 10), (49, 10), (54, 10), (55, 11), (1000, 200)])
def test_the_limit_is_the_larger_of_share_and_count(held: int, limit: int):
    assert GUARD.limit(held) == limit


@pytest.mark.parametrize(("vanishing", "held"), [(0, 0), (10, 10), (200, 1000)])
def test_what_is_within_the_limit_passes(vanishing: int, held: int):
    GUARD.check(vanishing, held, confirmed=False)


def test_more_than_the_limit_stops_the_run_and_says_what_to_do():
    with pytest.raises(ConfigurationError) as stopped:
        GUARD.check(201, 1000, confirmed=False)

    assert stopped.value.message == (
        "201 of 1000 identities are missing from the source, and only 200 may be deleted in one run"
    )
    assert stopped.value.next_step.endswith(
        "if they were really deleted, run the publication again with confirm_shrink"
    )
    assert stopped.value.context == {
        "alert": "too much vanished",
        "vanishing": 201,
        "held": 1000,
        "limit": 200,
    }


def test_a_confirmed_shrink_passes():
    GUARD.check(1000, 1000, confirmed=True)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_limit_that_allows_more_deletions_allows_fewer(vanishing: int, held: int):
    if vanishing <= GUARD.limit(held):
        GUARD.check(vanishing, held, confirmed=False)
        GUARD.check(max(0, vanishing - 1), held, confirmed=False)
    else:
        with pytest.raises(ConfigurationError):
            GUARD.check(vanishing, held, confirmed=False)
