"""What each error of the client means for a sender (foundation 15.2)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from contexture.errors import RejectedError, RetriableError
from contexture.kafka import FencedError, KafkaConfigurationError
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.error_codes import ErrorClass, classify_error, translate_error


def error(name, fatal=False, retriable=False, abortable=False):
    return KafkaError(getattr(KafkaError, name), "a reason", fatal, retriable, abortable)


@pytest.mark.parametrize(
    ("name", "fatal", "retriable", "abortable", "expected"),
    [
        ("_FENCED", True, False, False, ErrorClass.FENCED),
        ("PRODUCER_FENCED", False, False, True, ErrorClass.FENCED),
        ("_FATAL", False, False, False, ErrorClass.FATAL),
        ("_TIMED_OUT", False, True, False, ErrorClass.SAME_CALL_AGAIN),
        ("_INCONSISTENT", False, False, True, ErrorClass.SEND_AGAIN),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, False, True, ErrorClass.SEND_AGAIN),
        ("INVALID_TRANSACTION_TIMEOUT", True, False, False, ErrorClass.CONFIGURATION),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", True, False, False, ErrorClass.CONFIGURATION),
        ("TOPIC_AUTHORIZATION_FAILED", False, False, True, ErrorClass.CONFIGURATION),
        ("UNKNOWN_TOPIC_OR_PART", False, False, True, ErrorClass.CONFIGURATION),
        ("INVALID_RECORD", False, False, True, ErrorClass.REJECTED),
        ("MSG_SIZE_TOO_LARGE", False, False, False, ErrorClass.REJECTED),
        ("_MSG_TIMED_OUT", False, False, False, ErrorClass.BROKERS_AWAY),
        ("_AUTHENTICATION", False, False, False, ErrorClass.CONFIGURATION),
        ("_SSL", False, False, False, ErrorClass.CONFIGURATION),
    ],
)
def test_meaning(name, fatal, retriable, abortable, expected):
    assert classify_error(error(name, fatal, retriable, abortable)) is expected


@pytest.mark.parametrize(
    ("name", "kind", "next_step"),
    [
        ("_FENCED", FencedError, "leave the outbox to the other sender"),
        ("MSG_SIZE_TOO_LARGE", RejectedError, "message.max.bytes"),
        ("INVALID_RECORD", RejectedError, "key"),
        ("TOPIC_AUTHORIZATION_FAILED", KafkaConfigurationError, "WRITE"),
        ("UNKNOWN_TOPIC_OR_PART", KafkaConfigurationError, "start a new run"),
        ("_INCONSISTENT", RetriableError, "clear the task"),
    ],
)
def test_people_learn_what_to_do(name, kind, next_step):
    found = translate_error(error(name), "committing", topic="cars")
    assert isinstance(found, kind)
    assert next_step in found.next_step
    assert name in found.message


def test_the_first_undelivered_record_explains_a_failed_commit():
    watch = ClientCallbacks()
    watch.on_delivery(error("_PURGE_QUEUE"), Message("first"))
    watch.on_delivery(error("MSG_SIZE_TOO_LARGE"), Message("cars"))
    watch.on_delivery(error("_MSG_TIMED_OUT"), Message("other"))
    cause, topic = watch.cause(error("_INCONSISTENT"))
    assert (cause.name(), topic) == ("MSG_SIZE_TOO_LARGE", "cars")


def test_a_fatal_error_reported_by_callback_explains_what_fails_after_it():
    watch = ClientCallbacks()
    watch.on_error(error("_FENCED", fatal=True))
    assert watch.cause(error("_FATAL"))[0].name() == "_FENCED"


def test_a_transaction_that_had_failed_before_is_explained_by_what_the_client_logged():
    watch = ClientCallbacks()
    for line in (
        'TxnCoordinator/1: Failed to add partition "cars" [0] to transaction: Broker: Topic authorization failed',
        'TxnCoordinator/1: Failed to add partition "bikes" [0] to transaction: Broker: Topic authorization failed',
        "Current transaction failed in state InTransaction: Failed to add partition(s) (TOPIC_AUTHORIZATION_FAILED)",
    ):
        watch.on_log(f"[thrd:main]: {line}")
    cause, topic = watch.cause(error("_STATE"))
    assert (cause.name(), cause.str(), topic) == (
        "TOPIC_AUTHORIZATION_FAILED",
        "Failed to add partition(s)",
        "cars",
    )
    assert watch.cause(error("TOPIC_AUTHORIZATION_FAILED"))[1] == "cars"
    assert watch.cause(error("MSG_SIZE_TOO_LARGE"))[1] is None


@pytest.mark.parametrize("name", ["_TIMED_OUT", "INVALID_PRODUCER_EPOCH", "_INCONSISTENT", "NO_SUCH_NAME"])
def test_only_what_a_person_must_change_is_taken_from_the_log(name):
    watch = ClientCallbacks()
    watch.on_log(f"Current transaction failed in state BeginCommit: something ({name})")
    state = error("_STATE")
    assert watch.cause(state) == (state, None)


@pytest.mark.parametrize(
    ("needs", "advice"),
    [
        ("READ", "allow this user READ on the topic"),
        ("CREATE", "allow this user CREATE on the topic, or make the topic beforehand"),
    ],
)
def test_a_denied_topic_is_reported_with_the_operation_that_was_tried(needs, advice):
    found = translate_error(error("TOPIC_AUTHORIZATION_FAILED"), "trying", topic="cars", needs=needs)
    assert (found.next_step, found.message.partition(":")[0]) == (advice, "trying (topic cars) failed")


def test_a_refused_user_is_reported_immediately():
    watch = ClientCallbacks()
    watch.on_error(error("_ALL_BROKERS_DOWN"))
    watch.raise_refusal("starting")
    watch.on_error(error("_AUTHENTICATION"))
    with pytest.raises(KafkaConfigurationError, match="check user, password"):
        watch.raise_refusal("starting")


def test_a_certificate_that_is_refused_after_the_handshake_is_a_refusal():
    watch = ClientCallbacks()
    watch.on_error(KafkaError(KafkaError._TRANSPORT, "Receive failed: SSL alert number 40 (after 2ms)"))
    assert watch.refused is None
    found = KafkaError(KafkaError._TRANSPORT, "Receive failed: alert bad certificate: SSL alert number 42 (after 2ms)")
    watch.on_error(found)
    assert watch.refused is found


class Message:
    def __init__(self, topic):
        self._topic = topic

    def topic(self):
        return self._topic

    def error(self):
        return None
