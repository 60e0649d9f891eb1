"""Our connection types in Airflow: its form lists them, and its test of a connection runs ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from airflow.sdk import Connection  # noqa: E402

from builders.registry import SEX_AND_FLOW  # noqa: E402
from contexture.operations.actions.connection_check import connection_target  # noqa: E402
from contexture_airflow.connections.hooks import ContextBrokerHook, KafkaClusterHook, StructureRegistryHook  # noqa: E402
from contexture_airflow.connections.provider import provider_info  # noqa: E402
from contexture_airflow.connections.settings import kafka_settings  # noqa: E402
from contexture_sandbox.context_broker import TestBroker  # noqa: E402
from contexture_sandbox.registry import TestRegistry  # noqa: E402

HOOKS = {"kafka": KafkaClusterHook, "ngsi": ContextBrokerHook, "sdmx": StructureRegistryHook}


def tried(conn_type: str, **fields: Any) -> tuple[bool, str]:
    """Returns the result of the button that tests a connection."""
    worked, text = Connection(conn_id="tried", conn_type=conn_type, **fields).test_connection()
    return worked, text


def address(url: str) -> dict[str, Any]:
    host, port = url.removeprefix("http://").split(":")
    return {"host": host, "port": int(port)}


@pytest.mark.parametrize("declared", provider_info()["connection-types"], ids=lambda each: each["connection-type"])
def test_a_type_is_declared_to_airflow_as_its_hook_and_contexture_know_it(declared):
    hook = HOOKS[connection_target(declared["connection-type"])]
    assert (declared["hook-class-name"], declared["hook-name"]) == (
        f"{hook.__module__}.{hook.__name__}",
        hook.hook_name,
    )
    assert declared["connection-type"] == hook.conn_type


def test_airflow_lists_our_types_with_their_fields_and_without_importing_hooks():
    listed = """
import sys
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
for each in HookMetaService.hook_meta_data():
    if each.connection_type.startswith("contexture_"):
        print(each.connection_type, each.hook_name, *list(each.extra_fields)[:2], sep="|")
print(sorted({"contexture_airflow.connections.hooks", "contexture.kafka", "confluent_kafka"} & set(sys.modules)))
"""
    finished = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, timeout=280, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[-4:] == [
        "contexture_kafka|Kafka (Contexture)|security.protocol|sasl.mechanism",
        "contexture_ngsi|Context broker (Contexture)|authentication|token",
        "contexture_sdmx|Structure registry (Contexture)|flavour|api",
        "[]",
    ]


def test_what_every_process_of_airflow_loads_imports_next_to_nothing():
    code = (
        "import sys; import contexture_airflow.connections.provider;"
        "print(sorted(n for n in sys.modules if n.startswith(%r)))"
    )
    heavy = ("airflow.", "contexture.", "pydantic", "confluent_kafka", "httpx", "pyarrow")
    finished = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_a_kafka_that_is_away_is_reported_step_by_step_with_what_to_do():
    worked, text = tried("contexture_kafka", host="127.0.0.1", port=9, login="me", password="hunter2")
    whole, server, *others = text.splitlines()
    assert (worked, whole) == (False, "PLAINTEXT://me@127.0.0.1:9: it cannot be reached.")
    assert server.startswith("server 127.0.0.1:9: failed (")
    assert server.endswith(
        " s): nothing listens there. Next: start the broker, or correct its port in bootstrap.servers."
    )
    assert others[0] == "authentication: not tried (0.00 s): not tried: no server was reached."
    assert "hunter2" not in text


def test_a_connection_that_can_not_be_used_says_which_property_to_change():
    extra = '{"acks": "1", "sasl.password": "hunter2"}'
    worked, text = tried("contexture_kafka", host="127.0.0.1", port=9, extra=extra)
    assert not worked
    assert "acks" in text
    assert "Next: change the extra of the Airflow connection" in text
    assert "hunter2" not in text


def test_what_a_test_itself_runs_into_is_not_quoted():
    class Breaking(KafkaClusterHook):
        def get_conn(self):
            raise RuntimeError("hunter2")

    worked, text = Breaking("tried").test_connection()
    assert (worked, text) == (False, "the test itself failed (RuntimeError): see the log of the process that ran it")


def test_a_context_broker_is_tried_as_one():
    with TestBroker() as broker:
        worked, text = tried("contexture_ngsi", **address(broker.url), login="me", password="hunter2")
    lines = text.splitlines()
    assert (worked, lines[0]) == (True, f"{broker.url}: it works.")
    assert lines[1].startswith("probe: works (")
    assert lines[2].endswith(": orion, queried by source.api ngsiv2.")
    assert "hunter2" not in text


def test_a_structure_registry_is_tried_as_one():
    with TestRegistry() as registry:
        registry.submit(SEX_AND_FLOW)
        worked, text = tried("contexture_sdmx", **address(registry.url), extra='{"flavour": null, "token": null}')
    assert worked, text
    assert text.splitlines()[0] == f"{registry.url}: it works."
    assert "\nlist: works (" in text


def test_what_the_form_leaves_empty_is_as_if_it_were_not_there(set_connection):
    extra = {"security.protocol": None, "message.max.bytes": 5000, "sasl.username": None, "bootstrap.servers": None}
    set_connection("ours", conn_type="contexture_kafka", host="a,b:9093", login="ann", password="x", extra=extra)
    found = kafka_settings("ours")
    assert (found.identity(), found.options["message.max.bytes"]) == ("PLAINTEXT://ann@a:9092,b:9093", 5000)
