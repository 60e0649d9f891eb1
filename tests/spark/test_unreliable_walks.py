"""Pulls of a broker that answers wrongly: no absence is concluded and no change passed over that is none.

The pull's own decision (counts, walks, second looks, `complete`, watermark) is asked, without a Spark session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from secrets import randbits

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.unreliable_broker import PATH, TENANT, Adversary, UnreliableBroker
from contexture.errors import RetriableError
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.connect import open_broker
from contexture.sources.ngsi.entity_head import moment
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from spark_jobs.data_sources.ngsi import SLICE_BITS, landing_rows
from spark_jobs.data_sources.walks import WalkSelection, WalkShare
from spark_jobs.entities.read import read_source, selection_of

pytestmark = pytest.mark.spark

CONNECTION = BrokerConnection("http://broker:1026")
WATERMARK = "2026-01-10T00:00:00.000Z"
KINDS = (
    ("", 3),
    ("orion-ld", 1),
    *(pytest.param(*each, marks=pytest.mark.long) for each in (("", 1), ("scorpio", 1), ("stellio", 1))),
)
"""Flavour ("" for NGSIv2) and readers beside each other."""

WALKS_PER_KIND = 60
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class PullOfUnreliable:
    """One pull; a seed repeats it."""

    def __init__(self, home: Path, seed: int, flavour: str, readers: int, adversary: Adversary) -> None:
        random = Random(seed)
        self.random = random
        self.broker = UnreliableBroker(flavour, random, adversary, random.choice((0.0, 0.3)))
        self.watermark = random.choice((None, WATERMARK))
        self.order = _order(home, flavour, readers, random.randint(2, 10), self.watermark)
        self.storage = Home(str(home))
        self.folder = PublicationPaths(self.order.publication.name).landing(self.order.run)
        self.storage.remove(self.folder)

    def anomalies(self) -> list[str]:
        """How the pull ended (`complete`, `incomplete`, `failed`), then what it concluded wrongly.

        That is `false absence` (it was there all the while, and a complete pull did not land it), or `passed over` (a
        change up to the new watermark was not landed).
        """
        before = self.broker.entities()
        try:
            manifest = read_source(self.order, CONNECTION, self.watermark, self.land, transport=self.broker.transport())
        except RetriableError:
            return ["failed"]
        stayed = {name: time for name, time in self.broker.entities().items() if name in before}
        landed = self._landed()
        found = ["complete" if manifest.complete else "incomplete"]
        if manifest.complete and not stayed.keys() <= landed.keys():
            found.append("false absence")
        reached, since = moment(manifest.watermark_to), moment(self.watermark)
        following = moment(selection_of(self.order, manifest.watermark_to).since) if reached else None
        for name, modified in stayed.items():
            # A change made while others were read is met by the next run, which reads back a little.
            latest = following if name in self.broker.changed else reached
            is_due = latest is not None and modified <= latest and (since is None or modified > since)
            if is_due and modified.replace(microsecond=modified.microsecond // 1000 * 1000) > landed.get(name, NEVER):
                found.append("passed over")
                break
        return found

    def land(self, selection: WalkSelection, shares: Sequence[WalkShare]) -> None:
        """Reads the shares, a page of any of them in turn."""
        going = [self._batches(selection, share) for share in shares]
        batches = list[pa.RecordBatch]()
        while going:
            one = self.random.choice(going)
            batch = next(one, None)
            if batch is None:
                going.remove(one)
            else:
                batches.append(batch)
        with self.storage.write_atomically(f"{self.folder}/part-00000.parquet") as path:
            pq.write_table(pa.Table.from_batches(batches, LANDING), path, filesystem=self.storage.filesystem)

    def _batches(self, selection: WalkSelection, share: WalkShare) -> Iterator[pa.RecordBatch]:
        network = self.broker.transport()
        with open_broker(CONNECTION, selection.service, selection.dialect, transport=network) as broker:
            for walk in share.walks:
                first = walk.slice << SLICE_BITS
                for page in broker.scan(walk.query):
                    yield landing_rows(page, service=TENANT, walk=walk.number, first=first, bodies=walk.bodies)
                    first += len(page.entities)

    def _landed(self) -> dict[str, datetime]:
        """The newest version that was landed with its body, by id; `NEVER` where only its presence was."""
        newest: dict[str, datetime] = {}
        for name in self.storage.files(self.folder, ".parquet"):
            path = self.storage.path(f"{self.folder}/{name}")
            table = pq.read_table(path, columns=["operation", "id", "modified_at"], filesystem=self.storage.filesystem)
            for row in table.to_pylist():
                time = row["modified_at"] if row["operation"] == "upsert" else NEVER
                newest[row["id"]] = max(newest.get(row["id"], NEVER), time)
        return newest


def _order(home: Path, flavour: str, readers: int, page_size: int, watermark: str | None) -> StageOrder:
    source = {"kind": "ngsi", "connection": "broker", "service": TENANT, "page_size": page_size}
    source |= {"parallel_readers": readers, "types": ["Device"]}
    source |= {"api": "ngsi-ld", "flavour": flavour} if flavour else {"service_path": PATH}
    topics = {"naming": "cygnus", "data_model": "dm-by-entity"}
    publication = Publication.model_validate({"name": "city", "source": source, "topics": topics})
    return StageOrder(
        publication=publication,
        fingerprint=fingerprint(publication),
        home=str(home),
        run="r1",
        mode="full" if watermark is None else "changes",
        sequence=1,
    )


def outcomes(home: Path, seeds: range, adversary: Adversary, flavour: str, readers: int) -> Counter[str]:
    """How many pulls ended how; a seed that ended wrongly is printed."""
    found = Counter[str]()
    for seed in seeds:
        ended = PullOfUnreliable(home, seed, flavour, readers, adversary).anomalies()
        found.update(ended)
        if len(ended) > 1:
            print(f"seed {seed} of {flavour or 'ngsiv2'}, {readers} readers, {adversary}: {', '.join(ended)}")
    return found


@pytest.mark.parametrize(("flavour", "readers"), KINDS)
def test_nothing_is_concluded_wrongly_while_one_of_two_answers_is_true(
    tmp_path: Path, flavour: str, readers: int
) -> None:
    found = outcomes(tmp_path, range(WALKS_PER_KIND), "alternating", flavour, readers)
    assert (found["false absence"], found["passed over"]) == (0, 0)
    assert found["complete"] > 0


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("flavour", "readers"), KINDS)
def test_nothing_is_concluded_wrongly_in_any_of_twenty_thousand_pulls(
    tmp_path: Path, flavour: str, readers: int
) -> None:
    start = randbits(40)
    found = outcomes(tmp_path, range(start, start + 20_000 // len(KINDS)), "alternating", flavour, readers)
    print(f"seeds from {start}: {dict(found)}")
    assert (found["false absence"], found["passed over"]) == (0, 0)
