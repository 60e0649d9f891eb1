"""What one run's files say."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from contexture.operations.page.put_aside import of_outbox
from contexture.operations.reports.choosing import KeptRun
from contexture.operations.reports.documents import JudgedExpectation, RuleFound, RunReport
from contexture.operations.reports.type_drift import TypesOfRun
from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest, Manifest, Verdict
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.quarantine import Samples, kept_samples, quarantine_samples


def run_report(storage: Storage, run: KeptRun, run_id: str | None, types: TypesOfRun | None) -> RunReport:
    """The report of one run; how its volume changed is not known here.

    Raises:
        RetriableError: the storage did not answer.
    """
    manifest = run.manifest
    verdict, samples = _verdict(storage, manifest), _samples(storage, manifest)
    return RunReport(
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        run=manifest.run,
        run_id=run_id,
        mode=manifest.mode,
        status=run.status.status,
        prepared_at=run.prepared_at,
        received_from=manifest.received_from,
        received_to=manifest.received_to,
        in_source=_in_source(storage, manifest),
        in_source_change=None,
        read=manifest.read,
        accepted=manifest.accepted,
        unchanged=manifest.unchanged,
        repeated=manifest.repeated,
        quarantined=manifest.quarantined_entities,
        upserts=manifest.upserts,
        deletes=manifest.deletes,
        records=manifest.records,
        bytes=sum(shard.bytes for shard in manifest.shards),
        topics=manifest.topics,
        dead_letters=of_outbox(storage, manifest) or 0,
        attributes=types.attributes if types else None,
        new_types=types.new if types else (),
        approved=verdict.approved if verdict else None,
        expectations=tuple(_judged(verdict, samples)) if verdict else (),
        rules=tuple(_rules(manifest, samples)),
    )


def _judged(verdict: Verdict, samples: Samples) -> Iterator[JudgedExpectation]:
    for result in verdict.results:
        yield JudgedExpectation(**result.model_dump(), examples=samples.expectations.get(result.name, ()))


def _rules(manifest: Manifest, samples: Samples) -> Iterator[RuleFound]:
    for severity, counts in (("error", manifest.quarantined), ("warning", manifest.warnings)):
        for rule, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
            found = {"rule": rule, "severity": severity, "count": count, "samples": samples.rules.get(rule, ())}
            yield RuleFound.model_validate(found)


def _samples(storage: Storage, manifest: Manifest) -> Samples:
    kept = kept_samples(storage, manifest.publication, manifest.outbox)
    if kept is not None:
        return kept
    # Of an earlier version, or judged by nobody: what was refused is in quarantine all the same.
    refused = quarantine_samples(storage, manifest.publication, manifest.outbox, manifest.quarantined)
    return Samples(outbox=manifest.outbox, rules=refused)


def _verdict(storage: Storage, manifest: Manifest) -> Verdict | None:
    try:
        return Verdict.model_validate_json(
            storage.read(PublicationFolder(manifest.publication).verdict(manifest.outbox))
        )
    except (FileNotFoundError, ValidationError):
        return None


def _in_source(storage: Storage, manifest: Manifest) -> int | None:
    path = PublicationFolder(manifest.publication).landing_manifest(manifest.run)
    try:
        landing = LandingManifest.model_validate_json(storage.read(path))
    except (FileNotFoundError, ValidationError):
        return None
    # A registry's log tells what changed, and not how much there is.
    counted = landing.knows_source and (landing.complete or landing.registry_transaction is None)
    return landing.source_count if counted else None
