"""Errors of the client that come wrapped by Python."""

from __future__ import annotations

import traceback

import pytest
from confluent_kafka import KafkaError, KafkaException

from contexture.kafka.clients import call_client, call_errors, error_in
from contexture.kafka.error_codes import ErrorClass, classify_error


def test_a_fatal_error_that_met_a_delivery_report_is_still_the_clients() -> None:
    fenced = KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))
    wrapped = SystemError("<method 'name' ...> returned a result with an exception set")
    wrapped.__cause__ = fenced

    with pytest.raises(call_errors()) as caught:
        raise wrapped

    assert error_in(caught.value).name() == "_FENCED"


def test_a_call_of_the_client_that_fails_without_a_reason_is_sent_again_with_a_new_one() -> None:
    found = error_in(
        SystemError("<method 'poll' of 'cimpl.Producer' objects> returned NULL without setting an exception")
    )

    assert found.name() == "_FAIL"
    assert "returned NULL" in found.str()
    assert classify_error(found) is ErrorClass.SEND_AGAIN


def test_a_bare_error_of_the_client_becomes_an_exception_that_can_be_caught_and_shown() -> None:
    bare = KafkaError(KafkaError._FENCED, "fenced", True)

    def call() -> None:
        raise bare  # type: ignore[misc]

    with pytest.raises(call_errors()) as caught:
        call_client(call)

    assert error_in(caught.value).name() == "_FENCED"
    assert caught.value.__context__ is None
    assert "_FENCED" in "".join(traceback.format_exception(caught.value))


def test_what_a_call_gives_and_raises_otherwise_is_handed_on() -> None:
    def full() -> None:
        raise BufferError("Local: Queue full")

    assert call_client(lambda: 3) == 3
    with pytest.raises(BufferError):
        call_client(full)
