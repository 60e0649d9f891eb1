"""The store of one publication: what is stored of its runs, landings and outboxes, by their names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import orjson
import pyarrow as pa

from contexture.errors import DefectError
from contexture.records.changes.attribute_types import AttributeTypes
from contexture.storage.archive import PublicationArchive
from contexture.storage.delivery import AttemptLog, DeadLetterIndex, KnownLedger, LedgerRecord, ShardBegun
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import Compression, StoredFolder
from contexture.storage.inbox_files import InboxFolder, inbox_folder, open_inbox_folder
from contexture.storage.inbox_reader import InboxClaim, InboxReader, read_claim, write_claim
from contexture.storage.known_topics import KnownTopics
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder, StageResult
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.outboxes import Outboxes, OutboxStatus
from contexture.storage.paths import CURRENT, PublicationPaths
from contexture.storage.quarantine import Quarantine, RuleSamples
from contexture.storage.shrink_report import ShrinkDecision, ShrinkReport
from contexture.storage.state import State, StatePointer

SHARD_FILE = "part-00000.parquet"
"""The one Parquet file of a shard that holds records."""

REPORT_PAGE = "index.html"
"""The page of a data quality report, in its folder."""

_MOST_PARTS = 64
_ORDER = "order.json"
_RESULT = "result.json"
_SHRINK_REPORT = "shrink.json"
_SHRINK_DECISION = "shrink-decision.json"
_MANIFEST = "manifest.json"
_STRUCTURES_BEFORE = "structures_before.json"
_VERDICT = "verdict.json"
_TOPICS = "topics.parquet"
_APPROVED_TOPICS = "topics.json"
_SEEN_TYPES = "types.json"
_DEAD_LETTERS = "dead_letters.json"


def run_name(run_id: str) -> str:
    """A folder name for an Airflow run id, which may hold any character; the same id gives the same name."""
    return sha256(run_id.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class PublicationStore:
    """What is stored of one publication.

    Attributes:
        home: where it is stored.
        name: of the publication.
    """

    home: FileTree
    name: str

    @property
    def _paths(self) -> PublicationPaths:
        return PublicationPaths(self.name)

    def others(self) -> list[PublicationStore]:
        """Returns the stores of all other folders of the home."""
        return [PublicationStore(self.home, name) for name in self.home.folders("") if name != self.name]

    @property
    def is_used(self) -> bool:
        parts = (self._paths.outboxes(), self._paths.state(), self._paths.runs(), inbox_folder(self.name))
        return any(self.home.exists(part) for part in parts)

    def check_formats(self) -> None:
        """Checks the documents that the next run reads first: few, whatever the archive holds.

        Parquet files have no format of their own: those of an outbox go by its manifest, those of state by `CURRENT`.

        Raises:
            UnknownFormatError: another version of Contexture wrote one.
            RetriableError: the storage did not answer.
        """
        paths = self._paths
        StatePointer.check_file(self.home, f"{paths.state()}/{CURRENT}")
        KnownLedger.check_file(self.home, paths.ledger_seen())
        KnownTopics.check_file(self.home, paths.known_topics())
        for name in self.home.files(paths.shards_begun(), ".json"):
            ShardBegun.check_file(self.home, f"{paths.shards_begun()}/{name}")
        for marker in self.home.files(paths.pending(), ".json"):
            outbox = marker.split("-", 1)[1].removesuffix(".json")
            Manifest.check_file(self.home, paths.manifest(outbox))
            OutboxStatus.check_file(self.home, paths.status(outbox))

    def run(self, run: str) -> RunStore:
        """Returns what the scheduler and the stage job of a run wrote for each other."""
        return RunStore(self.home, self._paths.orders(run), self._folder(self._paths.work(run)))

    def landing(self, run: str) -> LandingStore:
        """Returns what a run read."""
        return LandingStore(self.home, self._paths.landing(run))

    def outbox(self, outbox: str) -> OutboxStore:
        """Returns the records of a run and what is stored about them."""
        return OutboxStore(self.home, self._paths.outbox(outbox), self._folder(self._paths.report(outbox)))

    def quarantine(self, outbox: str) -> Quarantine:
        """Returns what the run of an outbox refused."""
        return Quarantine(self.home, self._paths.quarantine(outbox), outbox)

    @property
    def runs(self) -> StoredFolder:
        """A folder for each run that retention has left."""
        return self._folder(self._paths.runs())

    def quarantined_outboxes(self) -> list[str]:
        return self.home.folders(self._paths.quarantines())

    @property
    def outboxes(self) -> Outboxes:
        return Outboxes(self.home, self.name)

    @property
    def state(self) -> State:
        """What the target holds."""
        return State(self.home, self.name)

    @property
    def archive(self) -> PublicationArchive:
        """The outboxes of concluded runs, by interval."""
        return PublicationArchive(self.home, self.name)

    @property
    def attempts(self) -> AttemptLog:
        return AttemptLog(self.home, self.name)

    @property
    def ledger(self) -> LedgerRecord:
        """What is recorded about the ledger in Kafka."""
        return LedgerRecord(self.home, self.name)

    @property
    def inbox(self) -> InboxReader:
        """The notifications that no concluded run has read."""
        return InboxReader(self.home, self.name)

    @property
    def alerts(self) -> StoredFolder:
        """When people were last alerted, by kind."""
        return self._folder(f"{self.name}/alerts")

    @property
    def verifications(self) -> StoredFolder:
        """What verifications of the topics found, each in a folder named by its time."""
        return self._folder(self._paths.verifications())

    def open_inbox_folder(self) -> InboxFolder:
        """Opens the inbox for its writer.

        Raises:
            OSError: the folder cannot be made.
        """
        return open_inbox_folder(self.home, self.name)

    def transfer_claim(self, run: str, outbox: str) -> None:
        """Passes what a run has claimed to the outbox that is made of it; nothing happens when it claimed nothing.

        Raises:
            RetriableError: the storage failed; calling it again completes it.
        """
        claim = read_claim(self.home, self._paths.landing_claim(run))
        if claim.files:
            write_claim(self.home, self._paths.outbox_claim(outbox), claim)

    def release_claim(self, outbox: str) -> None:
        """Removes from the inbox what is in Kafka by way of an outbox; calling it again is harmless.

        Raises:
            RetriableError: the storage failed; calling it again completes it.
        """
        self.inbox.remove(read_claim(self.home, self._paths.outbox_claim(outbox)).inbox_files)

    def known_topics(self) -> KnownTopics | None:
        """Returns the topics that the runs have sent to; None before the first."""
        return KnownTopics.find_file(self.home, self._paths.known_topics())

    def write_known_topics(self, known: KnownTopics) -> None:
        """Writes them, where they differ from what is stored."""
        if known != self.known_topics():
            self.home.write(self._paths.known_topics(), known.to_json())

    def reader(self, manifest: Manifest, shard: int) -> OutboxShardReader:
        return OutboxShardReader(self.home, manifest, shard)

    def _folder(self, path: str) -> StoredFolder:
        return StoredFolder(self.home, path)


class RunStore(StoredFolder):
    """What the scheduler and the stage job of one run wrote for each other.

    Args:
        home: where it is.
        path: of the folder.
        work: what the job writes on the way; removed when the outbox is complete.
    """

    def __init__(self, home: FileTree, path: str, work: StoredFolder) -> None:
        super().__init__(home, path)
        self.work = work

    @property
    def order_uri(self) -> str:
        """The address of the order, for the stage job."""
        return self.uri_of(_ORDER)

    def has_order(self) -> bool:
        """Returns whether the run was ordered."""
        return self.exists(_ORDER)

    def order(self) -> StageOrder:
        """Returns what the stage job has to do. Raises as `StoredDocument.from_file`."""
        return self.document(StageOrder, _ORDER)

    def write_order(self, order: StageOrder) -> None:
        """Writes what the stage job has to do; the result of an earlier order is removed before."""
        self.remove(_RESULT)
        self.write(_ORDER, order.to_json())

    def result(self) -> StageResult | None:
        """Returns what the stage job reported; None where it reported nothing."""
        return self.find_document(StageResult, _RESULT)

    def write_result(self, result: StageResult) -> None:
        self.write(_RESULT, result.to_json())

    def shrink_report(self) -> ShrinkReport | None:
        """Returns what the run would have deleted; None where the guard stopped nothing, or its file is damaged."""
        try:
            return self.find_document(ShrinkReport, _SHRINK_REPORT)
        except DefectError:
            return None

    def write_shrink_report(self, report: ShrinkReport) -> None:
        """Writes what the run would have deleted."""
        self.write(_SHRINK_REPORT, report.to_json())

    def shrink_decision(self) -> ShrinkDecision | None:
        """Returns what was decided about the deletions; None where nothing was."""
        return self.find_document(ShrinkDecision, _SHRINK_DECISION)

    def has_shrink_decision(self) -> bool:
        """Returns whether anything was decided about the deletions."""
        return self.exists(_SHRINK_DECISION)

    def write_shrink_decision(self, decision: ShrinkDecision) -> None:
        """Writes what was decided about the deletions."""
        self.write(_SHRINK_DECISION, decision.to_json())


class LandingStore(StoredFolder):
    """What one run read."""

    def manifest(self) -> LandingManifest:
        """Returns the manifest, which is there when the landing is complete.

        Raises:
            FileNotFoundError: there is none.
            DefectError: it is damaged.
        """
        return self.document(LandingManifest, _MANIFEST)

    def find_manifest(self) -> LandingManifest | None:
        """Returns the manifest; None where there is none. Raises otherwise as `manifest`."""
        return self.find_document(LandingManifest, _MANIFEST)

    def write_manifest(self, manifest: LandingManifest) -> None:
        """Writes the manifest, as the last file."""
        self.write(_MANIFEST, manifest.to_json())

    def write_claim(self, claim: InboxClaim) -> None:
        """Writes durably which files of the inbox the landing is made of.

        Raises:
            RetriableError: it is not stored.
        """
        write_claim(self.home, self.path_of("inbox.json"), claim)

    def count_rows(self) -> int | None:
        """Returns how many rows are in the parts that are complete; None where they are too many to be opened."""
        names, rows = self.files(".parquet"), 0
        if len(names) > _MOST_PARTS:
            return None
        for name in names:
            # A run that begins anew removes them.
            with suppress(OSError, pa.ArrowException), self.open_table(name, pre_buffer=False) as file:
                rows += file.metadata.num_rows
        return rows

    def structures_before(self) -> list[str]:
        """Returns the URNs that a registry had before the transactions of a backfill's landing."""
        urns: list[str] = orjson.loads(self.read(_STRUCTURES_BEFORE))
        return urns

    def write_structures_before(self, urns: list[str]) -> None:
        """Writes the URNs that a registry had before the transactions of a backfill's landing."""
        self.write(_STRUCTURES_BEFORE, orjson.dumps(urns))


class OutboxStore(StoredFolder):
    """The records of one run.

    Args:
        home: where they are.
        path: of the folder.
        report: the data quality report of the run.
    """

    def __init__(self, home: FileTree, path: str, report: StoredFolder) -> None:
        super().__init__(home, path)
        self.report = report

    def has_manifest(self) -> bool:
        """Returns whether the outbox is complete."""
        return self.exists(_MANIFEST)

    def write_manifest(self, manifest: Manifest) -> None:
        """Writes the manifest, as the last file."""
        self.write(_MANIFEST, manifest.to_json())

    def shard(self, shard: int) -> StoredFolder:
        return self.folder(f"shard={shard}")

    @property
    def state_delta(self) -> StoredFolder:
        """What concluding the outbox changes in state."""
        return self.folder("state_delta")

    def seen_types(self) -> AttributeTypes | None:
        """Returns the NGSI types of attributes that the run saw; None where it recorded none."""
        try:
            return AttributeTypes.from_json(self.state_delta.read(_SEEN_TYPES))
        except FileNotFoundError:
            return None

    def write_seen_types(self, seen: AttributeTypes) -> None:
        """Writes the NGSI types of attributes that the run saw."""
        self.state_delta.write(_SEEN_TYPES, seen.to_json())

    def has_verdict(self) -> bool:
        """Returns whether the quality of the outbox was checked."""
        return self.report.exists(_VERDICT)

    def verdict(self) -> QualityVerdict:
        """Returns the result of the quality check. Raises as `StoredDocument.from_file`."""
        return self.report.document(QualityVerdict, _VERDICT)

    def find_verdict(self) -> QualityVerdict | None:
        """Returns the result of the quality check; None where there is none, or it is damaged."""
        try:
            return self.report.find_document(QualityVerdict, _VERDICT)
        except DefectError:
            return None

    def write_verdict(self, verdict: QualityVerdict) -> None:
        self.report.write(_VERDICT, verdict.to_json())

    def samples(self) -> RuleSamples | None:
        """Returns a few of what broke each rule; None when the report has none, or they are damaged."""
        try:
            return self.report.find_document(RuleSamples, "samples.json")
        except DefectError:
            return None

    def has_topics(self) -> bool:
        return self.exists(_TOPICS)

    def topic_counts(self) -> dict[str, int]:
        """Returns the topics with their numbers of records, ordered by name."""
        with self.translate_read_errors(_TOPICS):
            table = self.table(_TOPICS, columns=["topic", "records"])
        return dict(sorted(zip(table.column("topic").to_pylist(), table.column("records").to_pylist(), strict=True)))

    def write_topics(self, topics: pa.Table, *, compression: Compression = "snappy") -> None:
        self.write_table(_TOPICS, topics, compression=compression)

    def approved_topics(self) -> KnownTopics | None:
        """Returns the topics as they were when the outbox was approved; None where that was not recorded."""
        return self.find_document(KnownTopics, _APPROVED_TOPICS)

    def write_approved_topics(self, topics: KnownTopics) -> None:
        """Writes them, unless they are stored: an outbox that is approved again may have been sent in part."""
        if not self.exists(_APPROVED_TOPICS):
            self.write(_APPROVED_TOPICS, topics.to_json())

    def dead_letters(self) -> DeadLetterIndex:
        """Returns which records of the concluded outbox are in the dead-letter topic."""
        return self.find_document(DeadLetterIndex, _DEAD_LETTERS) or DeadLetterIndex()

    def write_dead_letters(self, found: DeadLetterIndex) -> None:
        """Writes which records are in the dead-letter topic; nothing is written where there are none."""
        if found.count:
            self.write(_DEAD_LETTERS, found.to_json())
