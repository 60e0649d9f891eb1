"""The secrets of the reception alone: from a variable or a file, and never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request

from contexture.errors import ConfigurationError
from contexture.reception.targets import Access, credentials


def shown(token: str) -> Request:
    return Request({"type": "http", "headers": [(b"authorization", f"Bearer {token}".encode())]})


def allowed(access: Access) -> list[str]:
    return [token for token in ("one", "two", "three", "four") if access.allows(shown(token))]


def test_a_token_of_the_variable_and_each_line_of_the_file_are_good(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("two\n\n three \n")
    variables = {"CONTEXTURE_NOTIFY_TOKEN": "one", "CONTEXTURE_NOTIFY_TOKEN_FILE": str(tmp_path / "tokens")}
    assert allowed(credentials(variables)) == ["one", "two", "three"]


def test_a_file_that_is_named_wins_over_that_of_the_variable(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("two")
    (tmp_path / "others").write_text("four")
    variables = {"CONTEXTURE_NOTIFY_TOKEN_FILE": str(tmp_path / "tokens")}
    assert allowed(credentials(variables, tmp_path / "others")) == ["four"]


def test_without_a_token_nothing_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for variables in ({}, {"CONTEXTURE_NOTIFY_TOKEN": ""}, {"CONTEXTURE_NOTIFY_TOKEN_FILE": str(tmp_path / "empty")}):
        with pytest.raises(ConfigurationError, match="set CONTEXTURE_NOTIFY_TOKEN"):
            credentials(variables)


def test_the_error_of_a_missing_file_has_no_content(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        credentials({}, tmp_path / "nowhere")
