"""What Kafka accepts as the name of a topic."""

from __future__ import annotations

import pickle

import pytest

from contexture.errors import RejectedError
from contexture.records.topics import TopicNameError, check_legal


@pytest.mark.parametrize("name", ["a", "...", "A-Z_a.z09", "x" * 249])
def test_a_legal_name_comes_back_as_it_is(name: str) -> None:
    assert check_legal(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        (".", "is reserved"),
        ("..", "is reserved"),
        ("x" * 250, "has 250 characters; Kafka accepts 249"),
        ("a/b", "holds '/'"),
        ("a b", "holds ' '"),
        ("né", r"holds '\\xe9'"),
        ("a\n", r"holds '\\n'"),
        ("\ud83d", r"holds '\\ud83d'"),
    ],
)
def test_an_illegal_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(TopicNameError, match=reason) as raised:
        check_legal(name)
    assert "Next: choose another data model" in str(raised.value)


def test_a_refused_name_is_rejected_data_and_survives_a_process_boundary() -> None:
    with pytest.raises(RejectedError) as raised:
        check_legal("a/b")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy)) == (TopicNameError, str(raised.value))
