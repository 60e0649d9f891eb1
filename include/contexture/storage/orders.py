"""What the scheduler asks of the stage job, and what the job answers: two files, no secrets in either."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import SerializeAsAny, StringConstraints

from contexture.publications import Publication
from contexture.storage.documents import StoredDocument, Versioned
from contexture.storage.manifests import Mode


class Retry(StoredDocument):
    """Quarantined events of an outbox that are tried again: those that a rule of these refused, or all."""

    outbox: str
    rules: tuple[str, ...] = ()


ReplayFrom = Literal["auto", "archive", "source"]
TOPIC_PREFIX_PATTERN = r"^[A-Za-z0-9._-]{0,100}$"


class ReplayOptions(StoredDocument):
    """How a backfill sends its interval again.

    Attributes:
        replay_from: `archive`: what was sent then; `source`: what the source itself keeps of that time (the log of a
            registry, the history of an NGSI-LD broker); `auto`: the archive where it holds the whole interval, else the
            source where it keeps that time, else what of it is archived.
        incomplete: whether an interval of which something is missing is refused, or sent without that.
        outdated: on a topic that is a replica, whether a value is left out when the target holds a newer one, or sent
            over that.
        topic_prefix: what is put in front of every topic, so that the replay goes to other topics; empty for none.
    """

    replay_from: ReplayFrom = "auto"
    incomplete: Literal["refuse", "send"] = "refuse"
    outdated: Literal["skip", "send"] = "skip"
    topic_prefix: Annotated[str, StringConstraints(pattern=TOPIC_PREFIX_PATTERN)] = ""

    @property
    def sends_outdated(self) -> bool:
        """Whether nothing is left out for something newer: it was confirmed, or goes where nothing newer is."""
        return self.outdated == "send" or bool(self.topic_prefix)


class StageOrder(Versioned):
    """One stage.

    Attributes:
        run: folder name of the run.
        mode: what to read and send.
        sequence: the number the outbox will carry.
        interval: the data interval of a backfill; None otherwise.
        retry: what is tried again instead of reading the source; None otherwise.
        baseline: what the registry holds becomes state and nothing is sent: the first run of a publication that shows
            changes only.
        log_sent_to: the registry transaction up to which another instance has sent the registry's log, where this one
            begins without state; None otherwise.
        cluster: the Kafka cluster that the run was decided for: of what that holds it sends the changes. None in
            orders of before.
        full_run_due: why a full run was due when the source was about to be read; None where none was.
        replay: how a backfill sends its interval again.
    """

    format: int = 1
    publication: SerializeAsAny[Publication]
    fingerprint: str
    home: str
    run: str
    mode: Mode
    sequence: int
    republish: bool = False
    confirm_shrink: bool = False
    interval: tuple[datetime, datetime] | None = None
    retry: Retry | None = None
    baseline: bool = False
    log_sent_to: int | None = None
    cluster: str | None = None
    full_run_due: str | None = None
    replay: ReplayOptions = ReplayOptions()


class StageResult(Versioned):
    """The answer: an outbox, or an error as `ContextureError.as_dict` gives it."""

    format: int = 1
    outbox: str | None = None
    sequence: int | None = None
    records: int = 0
    shards: tuple[int, ...] = ()
    approved: bool | None = None
    report: str | None = None
    seconds: Mapping[str, float] = {}
    error: Mapping[str, object] | None = None
