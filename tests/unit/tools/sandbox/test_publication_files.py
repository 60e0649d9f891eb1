"""Where a stack takes its publication files from."""

from __future__ import annotations

from pathlib import Path

import pytest

from contexture.errors import ConfigurationError
from contexture_sandbox.stack import Stack, StackOptions


def stack(publications: Path, tmp_path: Path, **options: object) -> Stack:
    made = Stack(StackOptions(publications, tmp_path / "home", **options), lambda line: None)
    made.folder = tmp_path / "temporary"
    return made


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "bikes.yaml").write_text("name: bikes")
    return folder


def test_files_are_read_where_they_are(own: Path, tmp_path: Path) -> None:
    assert stack(own, tmp_path, in_place=True).publication_files() == own
    assert not (tmp_path / "temporary").exists()


def test_a_demo_gets_a_copy_that_it_may_change(own: Path, tmp_path: Path) -> None:
    copy = stack(
        own, tmp_path, prepare=lambda folder: (folder / "bikes.yaml").write_text("changed")
    ).publication_files()

    assert (copy / "bikes.yaml").read_text() == "changed"
    assert (own / "bikes.yaml").read_text() == "name: bikes"


def test_a_missing_folder_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no folder .*nowhere for publication files") as raised:
        stack(tmp_path / "nowhere", tmp_path, in_place=True).publication_files()
    assert raised.value.next_step == "make it, or correct CONTEXTURE_PUBLICATIONS"
