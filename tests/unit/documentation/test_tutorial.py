"""The publication of the tutorial is written and checked as its page says, against the sandbox's context broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from builders.pages import block, lines_not_printed
from builders.terminal import Terminal
from contexture_sandbox.context_broker.entities import seed_entities
from contexture_sandbox.context_broker.server import TestBroker

TUTORIAL = "tutorial.md"


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        broker.load(seed_entities(300, 1))
        yield broker


def test_a_mistake_in_the_file_is_named_and_the_corrected_file_is_previewed(
    terminal: Terminal, broker: TestBroker
) -> None:
    host, port = broker.url.removeprefix("http://").split(":")
    connection = {"conn_type": "http", "host": host, "port": int(port)}
    terminal.variables["AIRFLOW_CONN_CONTEXT_BROKER"] = json.dumps(connection)

    first = terminal.run(block(TUTORIAL, "mkdir -p var/tutorial"), code=1)
    assert lines_not_printed(block(TUTORIAL, "unknown key"), first.stdout + first.stderr) == []

    second = terminal.run(block(TUTORIAL, "sed -i.bak"))
    assert lines_not_printed(block(TUTORIAL, "preview of"), second.stdout) == []


def test_output_of_a_page_is_compared_without_numbers_frames_and_what_is_left_out() -> None:
    printed = "   12 s  city: full: 3 read\n│ city   │  4 │ 3: equal │\nuser admin   password x9"
    assert (
        lines_not_printed("  113 s  city: full: 2489 read\n city 5 3735: equal\n user admin password …", printed) == []
    )
    assert lines_not_printed("city: full: 1 written\n", printed) == ["city: full: 1 written"]
