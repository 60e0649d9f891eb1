"""What `Home` promises on an S3 server that stores folders, and where it takes the server's address from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contexture.errors import RetriableError
from contexture.storage.file_tree import create_bucket
from contexture.storage.home import Home
from fakes.folder_store import FolderStore, folder_store

ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderStore]:
    with folder_store() as server:
        for name, value in {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "contexture",
            "AWS_SECRET_ACCESS_KEY": "unused",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def home(store: FolderStore) -> Home:
    store.buckets.add("bucket")
    return Home("s3://bucket/home")


def test_the_bucket_is_made_at_the_server_that_the_environment_names(store: FolderStore):
    assert create_bucket("s3://bucket/home")
    assert create_bucket("s3://bucket/home")

    assert store.buckets == {"bucket"}
    Home("s3://bucket/home").write("p/a", b"1")
    assert store.files == {"bucket/home/p/a": b"1"}


def test_a_folder_has_no_bucket(store: FolderStore):
    assert not create_bucket("/var/lib/contexture")

    assert store.requests == []


@pytest.mark.parametrize("variable", ENDPOINTS)
def test_the_server_is_the_one_of_either_variable(store: FolderStore, monkeypatch: pytest.MonkeyPatch, variable: str):
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, store.url)
    store.buckets.add("bucket")

    Home("s3://bucket/home").write("p/a", b"1")

    assert store.files == {"bucket/home/p/a": b"1"}


@pytest.mark.slow
def test_a_folder_that_holds_an_empty_one_is_removed_with_it(store: FolderStore, home: Home):
    home.write("f/g/h/.b.1", b"1")
    home.filesystem.move(home.path("f/g/h/.b.1"), home.path("f/g/b"))
    home.write("f/a", b"2")
    home.write("k/l/m", b"3")
    with pytest.raises(OSError, match="InvalidRequest"):
        home.filesystem.delete_dir(home.path("f"))

    for folder in ("f", "f", "k"):
        home.remove(folder)

    assert store.files == {}
    assert store.folders == {"bucket/home"}
    assert home.folders("") == []
    assert not home.exists("f")


def test_a_folder_with_files_only_is_removed_as_before(store: FolderStore, home: Home):
    home.write("f/a", b"1")
    home.write("f/b", b"2")
    home.write("g/a", b"3")

    home.remove("f")

    assert store.files == {"bucket/home/g/a": b"3"}
    assert home.folders("") == ["g"]


def test_a_folder_that_cannot_be_removed_is_retriable(store: FolderStore, home: Home, monkeypatch: pytest.MonkeyPatch):
    home.write("f/a", b"1")
    monkeypatch.setattr(store, "delete", lambda path: False)

    with pytest.raises(RetriableError, match=r"could not read or write 'f'"):
        home.remove("f")
