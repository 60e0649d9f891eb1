"""What counts as a cluster that did its work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contexture_sandbox.demo.comparison import Comparison
from tools.cluster.evidence import Copies, Evidence, Kill

EQUAL = Comparison(topics=5, prepared=40, read=40, different=0)
GOOD = Evidence(
    kills=(
        Kill("spark executor", "4711", "a task was running in it"),
        Kill("kafka broker", "2", "10 records of shard 0 were committed"),
        Kill("celery worker", "worker-1", "10 records of shard 1 were committed"),
    ),
    runs={"1. publish_city": "success", "2. publish_vehicles": "success"},
    celery_tasks={"worker-1": 12, "worker-2": 9},
    spark_workers=2,
    applications=("stage city", "stage vehicles"),
    executors={"app-1": 3, "app-2": 2},
    objects={"vehicles": 20, "city": 30, "structures": 8},
    copies=Copies(topics=60, fewest=3, awaited=2),
    comparisons={"vehicles": EQUAL, "city": EQUAL, "structures": EQUAL},
    memory_mib={},
    seconds=600.0,
)


def test_a_cluster_that_did_its_work_has_no_problems() -> None:
    assert GOOD.problems() == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"comparisons": {**GOOD.comparisons, "city": replace(EQUAL, read=41)}},
            "city in Kafka is not what was prepared",
        ),
        ({"comparisons": {**GOOD.comparisons, "city": Comparison(0, 0, 0, 0)}}, "nothing of city was sent"),
        ({"runs": {"1. publish_city": "failed"}}, "1. publish_city ended as failed"),
        ({"kills": GOOD.kills[1:]}, "not everything was killed in mid-run: ['kafka broker', 'celery worker']"),
        ({"celery_tasks": {"worker-1": 12, "worker-2": 0}}, "the Celery worker worker-2 did no task"),
        ({"celery_tasks": {"worker-1": 12}}, "there were no two Celery workers"),
        ({"spark_workers": 1}, "1 Spark workers are alive"),
        ({"executors": {"app-1": 2}}, "no application got a new executor for the one that was killed"),
        ({"objects": {"vehicles": 1, "city": 1}}, "structures has no files on the object store"),
        ({"copies": Copies(60, 1, 1)}, "topics have 1 copies, and a write waits for 1"),
    ],
)
def test_what_is_missing_is_said(changed: dict[str, object], sentence: str) -> None:
    assert replace(GOOD, **changed).problems() == [sentence]  # type: ignore[arg-type]
