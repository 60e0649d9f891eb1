"""How large everything is: for figures, and smaller for a look whether it all works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.bench.measures import Measure, Progress


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of all benches.

    Attributes:
        pairs: how often each pair is measured.
        sent_records: in the outbox of `send`.
        large_values: sizes of larger values in `send`, and by how much fewer records of each are sent.
        topics: numbers of topics of `topics`.
        topic_records: for each of them.
        topic_pairs: how often each pair of `topics` is measured.
        memory_records: in the two outboxes of `memory`.
        prepared_entities: in the snapshots of `prepare`, ascending.
        held_entities: in the states of `changes`, ascending.
        scaled_entities: in the snapshots of `scale`, ascending, even; half of each is prepared too.
        source_entities: in the brokers of `source`, ascending, three or more multiples of five; one alone is a look.
        registry_structures: in the registries of `registry`, ascending, three or more; one alone is a look.
        run_entities: in the whole run.
        single_core_items: names and entities of `encode`.
        split_codes: in the messages of `split`, in one list or in many.
        split_memory_bytes: about so many in the message whose splitting is held to its memory.
        engines: which parts of `engines` are taken.
        engine_pairs: how often each pair of `engines` is measured.
        engine_entities: in the brokers that `engines` stages on Spark, few and many; multiples of five.
        store_entities: the same for runs with their home on an object store.
        engine_records: in each outbox that `engines` sends.
        engine_topics: of one partition, made to see what a broker opens for each.
        engine_publications: that run beside each other on Airflow's workers, of as many cars as `engine_cars`.
        engine_cars: in the source of those.
        rest_seconds: for which the platform is watched while nothing runs.
    """

    pairs: int = 5
    sent_records: int = 2_000_000
    large_values: tuple[tuple[int, int], ...] = ((2_000, 4), (100_000, 100))
    memory_records: tuple[int, int] = (100_000, 1_000_000)
    topics: tuple[int, ...] = (1_000, 10_000)
    topic_records: int = 10
    topic_pairs: int = 5
    prepared_entities: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    held_entities: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    scaled_entities: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    source_entities: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    registry_structures: tuple[int, ...] = (500, 5_000, 15_000)
    run_entities: int = 1_000
    single_core_items: int = 200_000
    split_codes: int = 50_000
    split_memory_bytes: int = 290_000_000
    engines: tuple[str, ...] = ("spark", "store", "kafka", "airflow")
    engine_pairs: int = 3
    engine_entities: tuple[int, int] = (10_000, 100_000)
    store_entities: tuple[int, int] = (1_000, 10_000)
    engine_records: int = 1_000_000
    engine_topics: int = 500
    engine_publications: int = 4
    engine_cars: int = 100
    rest_seconds: int = 30


QUICK = Sizes(
    pairs=1,
    sent_records=100_000,
    large_values=((2_000, 4),),
    memory_records=(60_000, 200_000),
    topics=(20, 60),
    topic_pairs=1,
    prepared_entities=(1_000, 5_000),
    held_entities=(2_000, 10_000),
    scaled_entities=(1_000, 3_000),
    source_entities=(500,),
    registry_structures=(60,),
    run_entities=100,
    single_core_items=20_000,
    split_codes=2_000,
    split_memory_bytes=3_000_000,
    engine_pairs=1,
    engine_entities=(500, 1_000),
    store_entities=(100, 500),
    engine_records=100_000,
    engine_topics=50,
    engine_publications=2,
    rest_seconds=5,
)
"""Shows that a bench works; says nothing about speed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a bench is given.

    Attributes:
        sizes: how large everything is.
        folder: empty, and removed afterwards.
        progress: takes a line of progress.
    """

    sizes: Sizes
    folder: Path
    progress: Progress


Bench = Callable[[Setting], list[Measure]]
