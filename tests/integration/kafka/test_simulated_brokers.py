"""Real brokers answer what the simulation's brokers answer (tests/unit/simulation/test_scripts.py asks those)."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from contexture_sandbox.kafka import EmbeddedKafka
from tools.simulation.scripts import EXPECTED, SCRIPTS, Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_real_brokers_answer_as_expected(kafka: EmbeddedKafka, script):
    given = kafka.client_settings()
    lab = Lab(
        f"simulated-{script.__name__}",
        lambda options: Producer({**given, **options}),
        lambda options: Consumer({**given, **options}),
        lambda options: AdminClient({**given, **options}),
    )
    assert script(lab) == EXPECTED[script.__name__]
