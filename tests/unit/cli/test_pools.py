"""`contexture pools` prints what `airflow pools import` reads."""

from __future__ import annotations

import json


def test_every_pool_has_slots_and_a_description(contexture):
    pools = json.loads(contexture("pools").out)
    assert sorted(pools) == ["contexture_broker", "contexture_source", "contexture_spark"]
    assert pools["contexture_spark"]["slots"] == 1
    assert all(pool["description"] and pool["include_deferred"] is False for pool in pools.values())
