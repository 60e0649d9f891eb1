"""Every code of the client is in the table, once, and means what it says there."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from contexture.errors import RejectedError, RetriableError
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.error_codes import HINTS, MEANINGS, OF_OTHERS, ErrorClass, classify_error, translate_error
from contexture.kafka.errors import FencedError, KafkaConfigurationError

CODES = {
    name: code
    for name, code in vars(KafkaError).items()
    if isinstance(code, int) and not isinstance(code, bool) and name.strip("_").isupper()
}

EXPECTED = {
    ErrorClass.FENCED: {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"},
    ErrorClass.FATAL: {"_FATAL", "_CRIT_SYS_RESOURCE", "_DESTROY", "_DESTROY_BROKER", "_GAPLESS_GUARANTEE"},
    ErrorClass.REJECTED: {
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
    },
    ErrorClass.BROKERS_AWAY: {
        "_MSG_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_UNKNOWN_BROKER",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
    },
    ErrorClass.SAME_CALL_AGAIN: {
        "_TIMED_OUT",
        "_RETRY",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "_IN_PROGRESS",
        "_INTR",
        "_ISR_INSUFF",
        "_NODE_UPDATE",
        "_QUEUE_FULL",
        "REQUEST_TIMED_OUT",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "NOT_CONTROLLER",
        "UNKNOWN_CONTROLLER_ID",
        "STALE_CTRL_EPOCH",
        "STALE_BROKER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LISTENER_NOT_FOUND",
        "THROTTLING_QUOTA_EXCEEDED",
        "REASSIGNMENT_IN_PROGRESS",
        "UNSTABLE_OFFSET_COMMIT",
        "REBOOTSTRAP_REQUIRED",
    },
}
CLASS_OF = {name: means for means, names in EXPECTED.items() for name in names}


def error(name: str, *, fatal: bool = False, retriable: bool = False, abortable: bool = False) -> KafkaError:
    return KafkaError(CODES[name], "a reason", fatal, retriable, abortable)


def test_every_code_of_the_client_is_in_the_table() -> None:
    assert set(MEANINGS) == set(CODES)


@pytest.mark.parametrize("name", sorted(CODES))
def test_a_code_means_what_the_table_says(name: str) -> None:
    expected = CLASS_OF.get(name, ErrorClass.CONFIGURATION if name in HINTS else ErrorClass.SEND_AGAIN)

    assert classify_error(error(name)) is expected


@pytest.mark.parametrize("name", sorted(CODES))
def test_a_code_comes_to_people_as_an_error_with_advice(name: str) -> None:
    found = translate_error(error(name), "committing", topic="cars")

    kinds = {
        ErrorClass.FENCED: FencedError,
        ErrorClass.REJECTED: RejectedError,
        ErrorClass.CONFIGURATION: KafkaConfigurationError,
    }
    assert isinstance(found, kinds.get(MEANINGS[name], RetriableError))
    assert found.next_step
    assert name in found.message


@pytest.mark.parametrize("name", sorted(name for name, means in MEANINGS.items() if means is not ErrorClass.FENCED))
def test_what_the_client_calls_fatal_ends_it_unless_a_person_must_act(name: str) -> None:
    by_name = {ErrorClass.REJECTED, ErrorClass.CONFIGURATION}

    assert classify_error(error(name, fatal=True)) is (
        MEANINGS[name] if MEANINGS[name] in by_name else ErrorClass.FATAL
    )


def test_the_client_says_whether_a_call_can_be_made_again_or_its_transaction_is_gone() -> None:
    assert classify_error(error("INVALID_TXN_STATE", retriable=True)) is ErrorClass.SAME_CALL_AGAIN
    assert classify_error(error("_TIMED_OUT", abortable=True)) is ErrorClass.SEND_AGAIN
    assert classify_error(error("_MSG_TIMED_OUT", abortable=True)) is ErrorClass.BROKERS_AWAY


def test_nothing_of_requests_that_are_never_made_is_in_another_class() -> None:
    assert {MEANINGS[name] for name in OF_OTHERS} == {ErrorClass.SEND_AGAIN}
    assert not set(OF_OTHERS) & (set(HINTS) | set(CLASS_OF))


def test_a_record_that_failed_with_its_batch_does_not_hide_the_one_that_was_invalid() -> None:
    class Message:
        def topic(self) -> str:
            return "cars"

        def error(self) -> None:
            return None

    watch = ClientCallbacks()
    watch.on_delivery(error("_INVALID_DIFFERENT_RECORD"), Message())
    watch.on_delivery(error("INVALID_RECORD"), Message())

    assert watch.cause(error("_INCONSISTENT"))[0].name() == "INVALID_RECORD"
