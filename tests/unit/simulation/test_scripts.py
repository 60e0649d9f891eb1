"""Simulated brokers answer as real ones do (tests/integration/kafka/test_simulated_brokers.py asks those)."""

from __future__ import annotations

import pytest

from tools.simulation.admin import SimulatedAdmin
from tools.simulation.clients import World
from tools.simulation.consumer import SimulatedConsumer
from tools.simulation.producer import SimulatedProducer
from tools.simulation.scripts import EXPECTED, SCRIPTS, Lab


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_simulated_brokers_answer_as_expected(script, seed):
    world, seen = World(seed, traced=True), []

    def body():
        lab = Lab(
            "script",
            lambda options: SimulatedProducer(world, dict(options)),
            lambda options: SimulatedConsumer(world, dict(options)),
            lambda options: SimulatedAdmin(world),
            world.events.sleep,
        )
        seen.append(script(lab))

    process = world.process("script", body)
    process.start()
    assert world.events.run(lambda: not process.is_alive, until=10_000), world.events.trace
    assert seen == [EXPECTED[script.__name__]]
