"""The demo's steps. Each does one thing to the running platform and says what to look at."""

from __future__ import annotations

import re
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

from contexture.errors import ContextureError, RetriableError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.context_broker.entities import changes
from contexture_sandbox.demo.comparison import concluded
from contexture_sandbox.demo.console import DemoConsole, TaskWatch
from contexture_sandbox.demo.outage import LedgerWatch
from contexture_sandbox.registry import seed_codelist
from contexture_sandbox.stack import Stack

ENTITIES = 3000
UPDATES = 10
STRUCTURES = 100
PUBLICATIONS = ("vehicles", "city", "structures")
RESYNC_SECONDS = 300
CHANGED_CODELIST = 7
DELETED_DATAFLOW = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=CITY:DF_00009_9(1.0)"


def prepare_publications(folder: Path) -> None:
    """Adapts the copies of the publications to the scenario: no schedule yet, small transactions for the outage."""
    for name in PUBLICATIONS:
        file = folder / f"{name}.yaml"
        text = re.sub(r"(?m)^schedule:.*$", "schedule: null", file.read_text())
        file.write_text(text)
    city = folder / "city.yaml"
    city.write_text(f"{city.read_text()}publish: {{shards: 2, transaction_records: 2}}\nresync: {{on_startup: full}}\n")


class DemoScenario:
    """The steps on one running stack."""

    def __init__(self, stack: Stack, console: DemoConsole) -> None:
        self.stack = stack
        self.console = console
        self.storage = Home(str(stack.options.home))
        self.problems: list[str] = []
        self._outage_happened = False
        self._watch = TaskWatch(console, stack.client)

    def run(self) -> None:
        """Runs all steps, in order."""
        self.first_load()
        self.changes()
        self.absence_and_outage()
        self.configuration_change()
        self.backfill()
        self.registry()

    def first_load(self) -> None:
        """Start-up resynchronisation loads what exists."""
        self.console.step(
            1,
            "Everything that exists is loaded when the platform starts",
            "The DAG resynchronise starts each publication once, without a button. vehicles and city are full "
            "(resync.on_startup); structures only notes what the registry holds, and waits for the next change.",
        )
        self.stack.client.await_dags([*(f"publish_{name}" for name in PUBLICATIONS), "resynchronise"])
        self._finish(*(self._await_next(name, after=0) for name in PUBLICATIONS))
        for name in PUBLICATIONS:
            self._report_last_run(name)

    def changes(self) -> None:
        """Only what changed is published; what is wrong goes to quarantine."""
        self.console.step(
            2,
            "The source changes: updates, a new entity, a deletion, bad entities",
            "Only the changes are sent; bad entities are in quarantine with the rule; the missing one is only noted.",
        )
        loaded = self.stack.broker.load(changes(ENTITIES, updates=UPDATES))
        self.console.line(f"{loaded.changed} entities changed, {loaded.created} new, {loaded.deleted} deleted")
        self._run("vehicles", "the source changed")
        self._report_last_run("vehicles")

    def absence_and_outage(self) -> None:
        """A tombstone on the second absence, and a broker that is killed while records are sent."""
        self.console.step(
            3,
            "The deletion is confirmed, and Kafka is killed in mid-send",
            "vehicles: missing twice, so its tombstone goes out. city: everything again, while the broker dies and "
            "comes back; the last table shows that nothing is lost or doubled.",
        )
        self._run("vehicles", "look again for what was missing")
        self._report_last_run("vehicles")
        watch = LedgerWatch(self.stack.kafka_settings(), "city")
        outage = threading.Thread(target=self._kill_kafka, args=(watch,), daemon=True)
        outage.start()
        self._run("city", "everything again, during an outage", mode="full")
        outage.join(timeout=60)
        if not self._outage_happened:
            self.problems.append("Kafka was not killed in mid-send: the send was not seen in the ledger")
        self._report_last_run("city")

    def configuration_change(self) -> None:
        """A changed publication is sent again in its new form."""
        self.console.step(
            4,
            "A publication is edited",
            "message.format becomes cygnus-lines: a new fingerprint: resync.on_config_change (full) sends all.",
        )
        before = len(self.stack.client.runs("publish_vehicles"))
        file = self.stack.publications / "vehicles.yaml"
        file.write_text(file.read_text().replace("format: ngsiv2", "format: cygnus-lines"))
        self._finish(self._await_next("vehicles", after=before))
        self._report_last_run("vehicles")

    def backfill(self) -> None:
        """Airflow's Backfill replays an interval from the archive."""
        self.console.step(
            5,
            "The first minute is replayed by Airflow's Backfill",
            "It sends what was archived then, marked by a header; values that are no longer the newest are skipped.",
        )
        outboxes = self.storage.publication("city").outboxes
        first = concluded(outboxes)[0][1].received_from
        if first is None:
            raise RetriableError("the first outbox has no time of reception", next_step="report this")
        file = self.stack.publications / "city.yaml"
        file.write_text(file.read_text().replace("schedule: null", 'schedule: "* * * * *"'))
        minute = first.replace(second=0, microsecond=0)
        identity = self._create_backfill(minute)
        self.console.line(f"backfill {identity} of {minute:%H:%M} to {minute + timedelta(minutes=1):%H:%M} UTC")
        run = self._await_backfill_run()
        self.stack.client.await_run(run.dag_id, run.run_id, watch=self._watch)
        self._report_last_run("city", mode="backfill")

    def registry(self) -> None:
        """A full flush of a registry, and then its transactions."""
        self.console.step(
            6,
            "A registry: everything once, then its transactions",
            "structures: all that the registry holds in one Kafka transaction; then one for a changed code list and "
            "one for a deleted dataflow, with the registry's own numbers. Keys are URNs; deleted is a null value.",
        )
        self._run("structures", "a full flush", mode="full")
        self._report_last_run("structures")
        changed = self.stack.registry.submit(seed_codelist(CHANGED_CODELIST, codes=2))
        deleted = self.stack.registry.delete([DELETED_DATAFLOW])
        self.console.line(f"registry transaction {changed.id} changed a code list, {deleted.id} deleted a dataflow")
        self._run("structures", "the registry changed")
        self._report_last_run("structures")

    def _create_backfill(self, minute: datetime, *, seconds: float = 300) -> int:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.stack.client.backfill("publish_city", minute, minute)
            except ContextureError:
                # The DAG gets its schedule when Airflow has read the file again; until then there is no interval.
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)

    def _await_backfill_run(self, *, seconds: float = 300) -> DagRun:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            runs = [run for run in self.stack.client.runs("publish_city") if run.run_type == "backfill"]
            if runs:
                return runs[0]
            time.sleep(1)
        raise RetriableError("Airflow has not started the backfill", next_step="look at Browse, Backfills in the UI")

    def _kill_kafka(self, watch: LedgerWatch) -> None:
        seen = watch.await_first_transaction(timeout_seconds=600)
        self.stack.kafka.kill()
        self.console.line(
            f"[bold]Kafka was killed[/bold] when {seen.position} records of shard {seen.shard} were committed"
        )
        self.stack.kafka.start()
        self._outage_happened = True
        self.console.line("Kafka is back")

    def _run(self, publication: str, reason: str, **params: object) -> None:
        run = self.stack.client.trigger(f"publish_{publication}", {"reason": reason, **params})
        self._finish(run)

    def _await_next(self, publication: str, *, after: int) -> DagRun:
        dag_id = f"publish_{publication}"
        deadline = time.monotonic() + RESYNC_SECONDS
        while time.monotonic() < deadline:
            failed = self.stack.airflow.failed()
            if failed:
                raise RetriableError(f"Airflow's {failed}", next_step="read the lines above")
            runs = self.stack.client.runs(dag_id)
            if len(runs) > after:
                return runs[after]
            time.sleep(1)
        raise RetriableError(f"{dag_id} was not started", next_step="look at the DAG resynchronise in the UI")

    def _finish(self, *runs: DagRun) -> None:
        """Waits for the end of runs that are active at the same time."""

        def watch_all(_: DagRun) -> None:
            for run in runs:
                self._watch(run)

        for run in runs:
            done = self.stack.client.await_run(run.dag_id, run.run_id, watch=watch_all)
            self.console.line(f"{run.dag_id}: {done.state} in {done.seconds:.1f} s")

    def _report_last_run(self, publication: str, mode: str | None = None) -> None:
        found = [m for _, m in concluded(self.storage.publication(publication).outboxes) if mode in {None, m.mode}]
        if found:
            self.console.line(f"[green]{publication}: {sentence(found[-1])}[/green]")


def sentence(manifest: Manifest) -> str:
    """What one run did, in a line."""
    if manifest.baseline:
        return f"{manifest.mode}: {manifest.source_count} structures noted, nothing sent: it is the first run"
    refused = ", ".join(f"{rule} {count}" for rule, count in sorted(manifest.quarantined.items()))
    parts = [
        f"{manifest.mode}: {manifest.read} read, {manifest.accepted} accepted, {manifest.unchanged} unchanged",
        f"{manifest.quarantined_entities} quarantined" + (f" ({refused})" if refused else ""),
        f"{manifest.records} records in {manifest.transactions} transactions to {manifest.topics} topics",
    ]
    if manifest.deletes:
        parts.append(f"{manifest.deletes} tombstones")
    if manifest.absent:
        parts.append(f"{manifest.absent} missing for the first time")
    if manifest.mode == "backfill":
        parts.append(f"{manifest.skipped_newer} skipped as outdated")
    return "; ".join(parts)
