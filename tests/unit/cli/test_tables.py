"""`contexture tables rebuild` says what it needs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("home")


def test_a_publication_without_a_file_is_reported(contexture):
    done = contexture("tables", "rebuild", "trains")
    assert done.code == 2
    assert "there is no valid publication file for trains. Next: name some of vehicles" in done.err


def test_a_connection_that_is_not_in_the_environment_is_reported(contexture):
    done = contexture("tables", "rebuild")
    assert done.code == 2
    assert "there is no Kafka connection 'kafka_default' in the environment" in done.err
