"""What a first run asks of the ledger, which need not be there yet."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from builders.structure_publications import structures
from contexture.kafka import ClientSettings
from contexture.sending.target import KafkaTarget
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def test_a_registry_s_log_has_no_sent_position_before_there_is_a_ledger(kafka: EmbeddedKafka) -> None:
    owner = structures(name=f"codes-{uuid4().hex[:8]}")
    target = KafkaTarget(ClientSettings.from_extra(kafka.client_settings()), owner)
    started = time.monotonic()
    assert target.sent_log_position() is None
    assert time.monotonic() - started < owner.publish.broker_wait_seconds / 2
