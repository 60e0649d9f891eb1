"""A registry, instances that publish it, and a read-committed reader of their topics: all in this process.

Reading, preparing, sending and concluding are real. The registry and Kafka are in memory, and Spark's tasks run in this
process in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from builders.layout import PublicationPaths
from builders.structure_reading import Opened, read_here
from builders.structure_runs import InProcess, registry_publication, structure_order
from contexture.kafka import ClientSettings
from contexture.publications import Publication
from contexture.records.topics.structure_routes import router
from contexture.sending import Publisher, SenderNames
from contexture.sending.resume import find_resume_point
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import ReplayOptions, Retry, StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger
from fakes.structure_registry import MEDIA_TYPE, FakeRegistry
from spark_jobs.shared.outbox import Stopwatch
from spark_jobs.structures.prepare import prepare_structures
from spark_jobs.structures.read import land
from spark_jobs.structures.read_context import ReadContext, ReadOutcome
from spark_jobs.structures.read_past import land_past
from spark_jobs.structures.read_tasks import ReadTask

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})


class Crashed(Exception):  # noqa: N818 - what a killed process leaves behind, not an error of ours
    """The process was killed here."""


class Instance:
    """An installation with a home of its own, and a publication that others may have too."""

    def __init__(self, home: Path, registry: FakeRegistry, cluster: FakeCluster, publication: Publication) -> None:
        self.storage = Home(str(home))
        self.publication = publication
        self._registry = registry
        self._cluster = cluster
        self._names = SenderNames(publication.name)
        self._folder = PublicationPaths(publication.name)
        self._outboxes = self.storage.publication(publication.name).outboxes
        self._runs = 0

    @property
    def is_new(self) -> bool:
        """Whether the instance never concluded a run."""
        return self.storage.publication(self.publication.name).state.pointer().outbox is None

    def run(self, mode: str, *, crash: str = "", commits: int = 0) -> None:
        """Runs once, and first sends what an earlier run left; `crash` names the step at which the run is killed.

        Raises:
            Crashed: the run was killed.
        """
        for pending in self._outboxes.pending():
            self._send(self._outboxes.manifest(pending.outbox), crash, commits)
        if crash == "settled":
            raise Crashed
        manifest = self._staged(mode, crash)
        self._send(manifest, crash, commits)

    def retry(self, publication: Publication, *, crash: str = "", commits: int = 0) -> None:
        """Retries all quarantined structures by the rules of this publication.

        Raises:
            Crashed: a run was killed.
        """
        strict, self.publication = self.publication, publication
        try:
            for status in self._outboxes.all():
                quarantine = self.storage.publication(self.publication.name).quarantine(status.outbox)
                if status.status == "concluded" and len(quarantine.chosen(())):
                    self._send(self._staged("changes", crash, Retry(outbox=status.outbox)), crash, commits)
        finally:
            self.publication = strict

    def quarantined(self) -> int:
        """Returns how many structures of concluded runs were refused, and not retried since."""
        concluded = [each.outbox for each in self._outboxes.all() if each.status == "concluded"]
        return sum(
            len(self.storage.publication(self.publication.name).quarantine(outbox).chosen(())) for outbox in concluded
        )

    def withheld(self) -> list[str]:
        """Returns the structures whose present content the target lacks."""
        state = self.storage.publication(self.publication.name).state
        rows = state.table(state.pointer(), ["identity", "withheld"]).to_pylist()
        return [row["identity"].decode() for row in rows if row["withheld"]]

    def _staged(self, mode: str, crash: str, retry: Retry | None = None) -> Manifest:
        self._runs += 1
        pointer = self.storage.publication(self.publication.name).state.pointer()
        entry = FakeLedger(self._cluster, self._names).read(0)
        sequence = 1 + max(pointer.sequence, entry.sequence if entry else 0)
        order = structure_order(
            publication=self.publication,
            home=self.storage.root,
            run=f"run{self._runs}",
            mode=mode,
            sequence=sequence,
            retry=retry,
        )
        landing = self._pulled(order, pointer.watermark)
        if crash == "pulled":
            raise Crashed
        manifest = prepare_structures(InProcess(), order, landing, Stopwatch())
        if crash == "prepared":
            raise Crashed
        return manifest

    def past(self, interval: tuple[datetime, datetime], **options: str) -> Manifest:
        """Prepares the outbox of a backfill from the registry's log.

        Raises:
            PartlyArchivedError: a transaction is missing.
        """
        self._runs += 1
        order = structure_order(
            publication=self.publication,
            home=self.storage.root,
            run=f"run{self._runs}",
            mode="backfill",
            sequence=1,
            interval=interval,
            replay=ReplayOptions.model_validate({"replay_from": "source", **options}),
        )
        context = self._context(order)
        outcome = land_past(context, order, interval)
        context.close()
        return prepare_structures(InProcess(), order, _landed(order, context, outcome, interval[0], None), Stopwatch())

    def _pulled(self, order: StageOrder, watermark: str | None) -> LandingManifest:
        started_at = datetime.now(UTC)
        context = self._context(order)
        outcome = land(context, order, watermark, started_at)
        context.close()
        landing = _landed(order, context, outcome, started_at, watermark)
        self.storage.write(self._folder.landing_manifest(order.run), landing.to_json())
        return landing

    def _context(self, order: StageOrder) -> ReadContext:
        task = ReadTask(
            connection=RegistryConnection("http://memory"),
            flavour=self._registry.flavour,
            media_type=MEDIA_TYPE,
            splits=True,
            landing=self.storage.publication(self.publication.name).landing(order.run),
            opening=Opened(self._registry),
        )
        identities = self.storage.publication(self.publication.name).state
        sent = identities.table(identities.pointer(), ["identity"]).column("identity").to_pylist()
        selectors = [Selector.parse(text) for text in self.publication.source.select]
        return ReadContext(
            self._registry,
            task,
            selectors,
            [each.decode() for each in sent],
            readers=2,
            read_shares=read_here,
        )

    def _send(self, manifest: Manifest, crash: str, commits: int) -> None:
        if self._outboxes.status(manifest.outbox).status == "prepared":
            self._outboxes.set_status(manifest.outbox, "approved", reason="the test says so")
        reader = OutboxShardReader(self.storage, manifest, 0)
        ledger = FakeLedger(self._cluster, self._names)
        if reader.records:
            self._cluster.script["commit_transaction"] = _killing(crash, commits)
            publisher = Publisher(
                SETTINGS,
                self._names,
                shards=1,
                ledger=ledger,
                hidden=FakeHidden(self._cluster),
                open_producer=self._cluster.open_producer,
                sleep=lambda seconds: None,
            )
            try:
                publisher.publish(reader)
            finally:
                self._cluster.script["commit_transaction"] = []
            if find_resume_point(reader, ledger.read(0)).superseded:
                # A flush of another instance shows more: the next run begins at the state.
                self._outboxes.set_status(manifest.outbox, "abandoned", reason="something later was sent")
                return
        if crash == "sent":
            raise Crashed
        conclude(self.storage.publication(manifest.publication), manifest, cluster="memory", target="memory")


def _landed(
    order: StageOrder, context: ReadContext, outcome: ReadOutcome, started_at: datetime, watermark: str | None
) -> LandingManifest:
    return LandingManifest.model_validate(
        {
            "run": order.run,
            "mode": order.mode,
            "source": "memory",
            "queries": tuple(context.queries),
            "watermark_from": watermark,
            "watermark_to": outcome.watermark,
            "rows": context.totals.rows,
            "present": 0,
            "source_count": outcome.source_count,
            "complete": outcome.complete,
            "started_at": started_at,
            "finished_at": datetime.now(UTC),
            "broker_time": None,
            "files": context.totals.files,
            "digest": context.digest,
            "registry_transaction": outcome.transaction,
            "retried": order.retry and order.retry.outbox,
            "missing": outcome.missing,
            "skipped_transactions": outcome.skipped_transactions,
        }
    )


def _killing(crash: str, commits: int) -> list[Callable[..., None] | None]:
    """Returns the outcome of each commit: some succeed, and the next one fails, or succeeds without a response."""
    if crash not in {"before commit", "after commit"}:
        return []

    def killed(producer: object) -> None:
        if crash == "after commit":
            producer.finish()  # type: ignore[attr-defined]
        raise Crashed

    return [*[None] * commits, killed]


class World:
    """A registry with its log, and instances that share nothing but Kafka."""

    def __init__(self, home: Path, instances: int = 1, *, has_log: bool = True, **changes: object) -> None:
        self.registry = FakeRegistry(has_log=has_log)
        self.cluster = FakeCluster()
        self.publication = registry_publication(**changes)
        self._sent_before = 0
        make = partial(Instance, registry=self.registry, cluster=self.cluster, publication=self.publication)
        self.instances = [make(home / str(number)) for number in range(instances)]

    def began(self) -> None:
        """Ignores in `sent_transactions` what was sent so far."""
        self._sent_before = len(self.cluster.transactions)

    def sent_transactions(self) -> list[tuple[int, bool, int]]:
        """Returns, for each Kafka transaction, that of the registry, whether it deletes, and its number of records."""
        transactions = []
        for transaction in self.cluster.transactions[self._sent_before :]:
            records = [sent for sent in transaction if not sent.topic.startswith("contexture.")]
            number = int(dict(records[0].headers)["contexture_registry_transaction"])  # type: ignore[call-overload]
            transactions.append((number, records[0].value is None, len(records)))
        return transactions

    def replica(self) -> Mapping[str, Mapping[str, bytes]]:
        """Returns what a read-committed reader has after every transaction, by topic and key."""
        topics: dict[str, dict[str, bytes]] = defaultdict(dict)
        for sent in self.cluster.committed:
            if sent.topic.startswith("contexture."):
                continue
            key = (sent.key or b"").decode()
            if sent.value is None:
                topics[sent.topic].pop(key, None)
            else:
                topics[sent.topic][key] = sent.value
        return {topic: held for topic, held in topics.items() if held}

    def expected(self) -> Mapping[str, Mapping[str, bytes]]:
        """Returns the registry's structures in the topics that the publication's routes select."""
        held = self.registry.now
        topics: dict[str, dict[str, bytes]] = defaultdict(dict)
        for urn, names in router(self.publication.topics).route(held, held=held).topics.items():
            for name in names:
                topics[name][urn] = self.registry.message(urn)
        return topics
