"""What the pages say to type about structures, typed beside the registry of the sandbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from builders.pages import block
from builders.registry import SEX_AND_FLOW, codelist, codelists
from contexture.errors import ConfigurationError
from contexture.sources.sdmx import Selector
from contexture_sandbox.ports import free_port
from contexture_sandbox.registry import TestRegistry

PUBLISH, SPLIT, SELECT = "how-to/publish-structures.md", "how-to/split-structures.md", "how-to/select-structures.md"
RUN = "how-to/run-a-test-registry.md"


@pytest.fixture(scope="module")
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        running.submit(SEX_AND_FLOW)
        running.submit(codelists(codelist("CL_FREQ", "1.0", "A", "M", agency="ECB")))
        yield running


@pytest.fixture
def connected(terminal, registry):
    """The terminal with the page's connection, and the page's file."""
    named = block(PUBLISH, "AIRFLOW_CONN_REGISTRY")
    terminal.set(named.replace("https://registry.example.org/FusionRegistry", registry.url))
    (terminal.folder / "publications" / "structures.yaml").write_text(block(PUBLISH, "name: structures"))
    return terminal


def test_the_connection_test_names_the_product(connected):
    shown = connected.run(block(PUBLISH, "contexture connection test registry")).stdout
    assert "  product: works (" in shown


def test_the_check_shows_the_topics_of_structures(connected):
    script = block(PUBLISH, "contexture check structures.yaml\n")
    shown = connected.run(script.replace("structures.yaml", "publications/structures.yaml")).stdout
    assert "codelists-ECB" in shown


def test_sizes_are_measured_before_the_first_flush(connected):
    script = block(PUBLISH, "--sizes").replace("structures.yaml", "publications/structures.yaml")
    assert connected.run(script).stdout.endswith("  all of them fit\n")


def test_a_wrong_selector_is_reported_as_on_the_page():
    with pytest.raises(ConfigurationError) as raised:
        Selector.parse("Codlist=ECB:*(*)")
    assert str(raised.value) == block(SELECT, "cannot be read at character").strip()


def test_a_message_is_taken_apart(terminal):
    (terminal.folder / "structures.xml").write_bytes(SEX_AND_FLOW)
    shown = terminal.run(block(SPLIT, "contexture structures split structures.xml")).stdout
    assert "Codelist=SDMX:CL_SEX(2.1)" in shown
    assert shown.splitlines()[-1].startswith("2 artefacts with ")


@pytest.mark.skipif(shutil.which("curl") is None, reason="the command on the page needs curl")
def test_a_registry_is_asked_and_each_structure_written_to_a_file(terminal):
    with TestRegistry("plain") as registry:
        registry.submit(SEX_AND_FLOW)
        script = block(SPLIT, "contexture structures split - --to parts")
        terminal.run(script.replace("https://registry.example.org", registry.url))
    assert [path.name for path in (terminal.folder / "parts").iterdir()] == ["Codelist-SDMX-CL_SEX-2.1.xml"]


def test_a_registry_of_the_sandbox_serves_until_it_is_ended(terminal):
    port = free_port()
    script = block(RUN, "python -m contexture_sandbox registry").replace(".venv/bin/python", "python")
    with terminal.beside(script.replace("8179", str(port))) as url:
        assert url == f"http://127.0.0.1:{port}"
        connection = {"conn_type": "http", "host": url}
        terminal.variables["AIRFLOW_CONN_REGISTRY"] = json.dumps(connection)
        shown = terminal.run("contexture connection test registry").stdout
    assert "100 structures" in shown
