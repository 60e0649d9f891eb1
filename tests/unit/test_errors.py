"""Errors: what people read, and what survives a process boundary."""

from __future__ import annotations

import pickle

import pytest

from contexture.errors import (
    ConfigurationError,
    ContextureError,
    DefectError,
    RejectedError,
    RetriableError,
    from_dict,
)
from contexture.records.topics import TopicNameError

BY_INTENT = [
    (RetriableError, "retry"),
    (ConfigurationError, "fix configuration"),
    (RejectedError, "data rejected"),
    (DefectError, "bug"),
]


def test_the_text_says_what_happened_and_what_to_do_next():
    error = RetriableError("the broker is away.", next_step="start it", url="http://127.0.0.1")

    assert str(error) == "the broker is away. Next: start it"
    assert error.context == {"url": "http://127.0.0.1"}


@pytest.mark.parametrize(("kind", "intent"), BY_INTENT)
def test_an_error_comes_back_from_its_document(kind: type[ContextureError], intent: str):
    document = kind("no room", next_step="make some", path="a/b", bytes=7).as_dict()

    assert document == {
        "intent": intent,
        "message": "no room",
        "next_step": "make some",
        "context": {"path": "a/b", "bytes": "7"},
    }
    back = from_dict(document)
    assert type(back) is kind
    assert back.as_dict() == document


def test_a_document_without_an_intent_is_a_defect_with_a_next_step():
    error = from_dict({})

    assert type(error) is DefectError
    assert str(error) == "unknown error. Next: read the log of the task"


def test_an_error_survives_pickling_with_its_class_and_context():
    error = pickle.loads(pickle.dumps(TopicNameError("too long", next_step="shorten it", length=250)))

    assert type(error) is TopicNameError
    assert (error.message, error.next_step, error.context) == ("too long", "shorten it", {"length": 250})
    assert error.intent == "data rejected"
