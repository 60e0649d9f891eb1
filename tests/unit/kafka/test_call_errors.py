"""Errors of the client that come wrapped by Python."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from contexture.kafka.clients import call_errors, error_in
from contexture.kafka.error_table import Meaning, meaning


def test_a_fatal_error_that_met_a_delivery_report_is_still_the_clients() -> None:
    fenced = KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))
    wrapped = SystemError("<method 'name' ...> returned a result with an exception set")
    wrapped.__cause__ = fenced

    with pytest.raises(call_errors()) as caught:
        raise wrapped

    assert error_in(caught.value).name() == "_FENCED"


def test_a_call_of_the_client_that_fails_without_a_reason_is_sent_again_with_a_new_one() -> None:
    told = error_in(
        SystemError("<method 'poll' of 'cimpl.Producer' objects> returned NULL without setting an exception")
    )

    assert told.name() == "_FAIL"
    assert "returned NULL" in told.str()
    assert meaning(told) is Meaning.SEND_AGAIN
