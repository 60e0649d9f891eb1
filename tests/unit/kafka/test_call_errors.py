"""Errors of the client that come wrapped by Python."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from contexture.kafka.clients import call_errors, error_in


def test_a_fatal_error_that_met_a_delivery_report_is_still_the_clients() -> None:
    fenced = KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))
    wrapped = SystemError("<method 'name' ...> returned a result with an exception set")
    wrapped.__cause__ = fenced

    with pytest.raises(call_errors()) as caught:
        raise wrapped

    assert error_in(caught.value).name() == "_FENCED"


def test_another_system_error_is_nobodys_to_translate() -> None:
    with pytest.raises(SystemError, match="broken"):
        error_in(SystemError("broken"))
