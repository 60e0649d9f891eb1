"""Documents on storage say of which format they are, and an earlier Contexture notices one that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from contexture.errors import ConfigurationError
from contexture.storage.delivery import DeadLetterIndex, KnownLedger, SendAttempts, ShardBegun
from contexture.storage.documents import UnknownFormatError, Versioned
from contexture.storage.home import Home
from contexture.storage.inbox_reader import InboxClaim
from contexture.storage.known_topics import KnownTopics
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder, StageResult
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.state import StatePointer

MEMBERS: dict[type[Versioned], tuple[int, str]] = {
    StatePointer: (
        3,
        "cluster concluded_at files fingerprint format full_concluded_at full_run_due generation identities incomplete "
        "lost_topics outbox rows sequence target types watermark",
    ),
    Manifest: (
        1,
        "absent accepted baseline collisions deletes fingerprint flush format_version headers interval landing_digest "
        "missing mode of_snapshot outbox present publication quarantined quarantined_entities read received_from "
        "received_to repeated replayed replayed_from retried run sends_outdated sequence shards skipped_newer "
        "source_count state_generation topic_prefix topics transcoded unchanged upserts warnings watermark",
    ),
    OutboxStatus: (1, "attempts format outbox sequence steps"),
    SendAttempts: (1, "allowed attempt failed failed_at format intent message next_at outbox shard state"),
    QualityVerdict: (1, "approved format outbox results"),
    LandingManifest: (
        1,
        "broker_time complete digest files finished_at format missing mode notified present queries "
        "registry_transaction retried rows run skipped_transactions source source_count started_at watermark_from "
        "watermark_to",
    ),
    InboxClaim: (1, "files format"),
    DeadLetterIndex: (1, "format shards"),
    KnownTopics: (1, "cluster format ids"),
    KnownLedger: (1, "cluster format topic_id"),
    ShardBegun: (1, "committed format topic_id"),
    StageOrder: (
        1,
        "baseline cluster confirm_shrink fingerprint format full_run_due home interval "
        "log_sent_to mode publication replay republish retry run sequence",
    ),
    StageResult: (1, "approved error format outbox records report seconds sequence shards"),
}
"""Of each kind of document: its format, and its members in that format."""


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_a_document_with_other_members_is_of_another_format(kind: type[Versioned]) -> None:
    """An earlier Contexture can't read a member that it doesn't know.

    So what comes or goes after a release raises FORMAT. Before the first release it is enough to note the member here.
    """
    assert (kind.FORMAT, " ".join(sorted(kind.model_fields))) == MEMBERS[kind]


def test_every_kind_of_document_is_held_to_its_members() -> None:
    ours = {kind for kind in Versioned.__subclasses__() if kind.__module__.startswith("contexture.")}
    assert ours == set(MEMBERS)


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_what_is_written_says_its_format(kind: type[Versioned]) -> None:
    assert kind.FORMAT_MEMBER in kind.model_fields


@pytest.mark.parametrize(
    ("found", "whose", "advice"), [(2, "an earlier", "an empty home"), (4, "a later", "install that version")]
)
def test_state_of_another_format_is_refused_with_what_to_do(
    tmp_path: Path, found: int, whose: str, advice: str
) -> None:
    storage = Home(str(tmp_path))
    storage.write("vehicles/state/CURRENT", b'{"format": %d, "generation": 1}' % found)

    with pytest.raises(UnknownFormatError, match=f"written by {whose} Contexture: vehicles/state/CURRENT is of format"):
        storage.publication("vehicles").check_formats()
    with pytest.raises(ConfigurationError) as refused:
        storage.publication("vehicles").state.pointer()
    assert advice in refused.value.next_step


def test_what_is_of_this_format_or_cannot_be_read_passes_the_check(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    storage.publication("vehicles").state.commit(StatePointer())
    storage.write("vehicles/ledger.json", b"{")
    storage.publication("vehicles").check_formats()
