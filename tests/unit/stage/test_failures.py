"""Failures of Spark as errors with an intent."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError, ContextureError, DefectError, RejectedError, RetriableError
from contexture.records.messages import MessageError
from contexture.records.topics import TopicNameError
from contexture.sources.ngsi.entity import EntityError
from spark_jobs.session import to_contexture_error

WRAPPED = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/evaluation.py", line 3, in evaluate
    raise error
{name}: {text}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


@pytest.mark.parametrize(
    ("kind", "intent"),
    [
        (RetriableError, RetriableError),
        (ConfigurationError, ConfigurationError),
        (RejectedError, RejectedError),
        (DefectError, DefectError),
        (TopicNameError, RejectedError),
        (MessageError, RejectedError),
        (EntityError, RejectedError),
    ],
)
def test_an_error_of_ours_comes_back_through_spark_as_what_it_was(
    kind: type[ContextureError], intent: type[ContextureError]
) -> None:
    raised = kind("the storage failed. Twice", next_step="make room, then retry")
    name = f"{kind.__module__}.{kind.__qualname__}"

    found = to_contexture_error(RuntimeError(WRAPPED.format(name=name, text=raised)))

    assert type(found) is intent
    assert (found.message, found.next_step) == ("the storage failed. Twice", "make room, then retry")


@pytest.mark.parametrize("text", ["java.io.IOException: No space left on device", "OSError: [Errno 28] ENOSPC"])
def test_a_full_disk_is_retriable(text: str) -> None:
    found = to_contexture_error(RuntimeError(text))

    assert type(found) is RetriableError
    assert "make room below CONTEXTURE_HOME" in found.next_step


@pytest.mark.parametrize("text", ["java.lang.OutOfMemoryError: Java heap space", "MemoryError"])
def test_too_little_memory_is_a_setting(text: str) -> None:
    found = to_contexture_error(RuntimeError(text))

    assert type(found) is ConfigurationError
    assert "spark.driver.memory" in found.next_step


def test_anything_else_is_a_bug_with_its_first_line() -> None:
    found = to_contexture_error(KeyError("\n  \nspeed is unknown\nand more"))

    assert type(found) is DefectError
    assert found.message.startswith("the stage job failed unexpectedly: KeyError: ")
    assert found.next_step.startswith("read the log of the stage task")
