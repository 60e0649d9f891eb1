"""A publication's topics as it wants them."""

from __future__ import annotations

from builders.outboxes import publication
from contexture.sending.dead_letters import DeadLetters
from contexture.sending.size_limits import dead_letter_spec, dead_letters_of


def test_the_dead_letter_topic_keeps_every_letter_as_long_as_runs_are_kept():
    found = dead_letter_spec(
        publication(
            publish={"on_failure": "dead-letter"},
            topics={"replication_factor": 3, "partitions": 6},
            retention={"archive_days": 2},
        )
    )
    assert found is not None
    assert (found.name, found.partitions, found.replication_factor) == ("contexture.dead-letter.vehicles", 1, 3)
    assert found.full_config() == {"cleanup.policy": "delete", "retention.ms": "172800000"}


def test_a_publication_that_stops_has_none():
    assert dead_letter_spec(publication()) is None
    assert dead_letters_of(publication()) is None


def test_as_many_go_there_as_the_publication_says():
    given = {"on_failure": "dead-letter", "dead_letter_topic": "aside", "max_dead_letters": 3}
    assert dead_letters_of(publication(publish=given)) == DeadLetters("aside", 3)
