"""Files that are there as a whole or not at all, on whatever filesystem."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture.storage import file_tree
from contexture.storage.home import Home, home_uri
from fakes.full_disk import FullDisk


@pytest.fixture(params=["path", "file-uri", "mock-uri", "fsspec-memory-uri"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    name = uuid4().hex
    roots = {
        "path": str(tmp_path),
        "file-uri": tmp_path.as_uri(),
        "mock-uri": f"mock:///{name}",
        "fsspec-memory-uri": f"fsspec+memory:///{name}",
    }
    return Home(roots[request.param])


def test_what_was_written_is_read(storage: Home):
    storage.write("a/b/c.json", b"one")
    storage.write("a/b/c.json", b"two")

    assert storage.read("a/b/c.json") == b"two"
    assert storage.size("a/b/c.json") == 3
    assert storage.exists("a/b/c.json")
    assert storage.exists("a/b")
    assert not storage.exists("a/x")


def test_folders_and_files_are_listed_by_name_without_hidden_ones(storage: Home):
    for name in ("f/b.json", "f/a.json", "f/c.txt", "f/.hidden.json", "f/_SUCCESS", "f/deep/z.json"):
        storage.write(name, b"")

    assert storage.files("f") == ["a.json", "b.json", "c.txt"]
    assert storage.files("f", ".json") == ["a.json", "b.json"]
    assert storage.folders("f") == ["deep"]
    assert storage.files("nothing") == []
    assert storage.folders("nothing") == []


def test_the_time_of_an_entry_is_that_of_what_was_written_last_below_it(storage: Home):
    before = datetime.now(UTC) - timedelta(seconds=5)
    for name in ("f/a/one", "f/a/deep/two", "f/.hidden", "f/a/f/three"):
        storage.write(name, b"")

    found = storage.written_at("f")

    # fsspec's memory knows no times.
    assert set(found) == (set() if storage.root.startswith("fsspec") else {"a", ".hidden"})
    assert all(before < at < datetime.now(UTC) + timedelta(seconds=5) for at in found.values())
    assert storage.written_at("nothing") == {}


def test_removing_takes_files_and_folders_and_what_is_not_there(storage: Home):
    storage.write("f/a", b"1")
    storage.write("f/g/b", b"2")

    storage.remove("f/a")
    assert storage.files("f") == []
    storage.remove("f")
    storage.remove("f")

    assert not storage.exists("f/g/b")


def test_a_copy_is_whole(storage: Home):
    storage.write("a", b"content")

    storage.copy("a", "deep/b")

    assert storage.read("deep/b") == b"content"


def test_what_is_not_there_is_a_file_not_found(storage: Home):
    with pytest.raises(FileNotFoundError):
        storage.read("nothing")


def test_an_error_while_writing_leaves_the_old_content_and_no_rest(storage: Home):
    storage.write("f/a", b"old")

    with pytest.raises(ZeroDivisionError):
        _begin_writing(storage, "f/a")

    assert storage.read("f/a") == b"old"
    assert _everything(storage, "f") == ["a"]


def test_a_file_that_is_being_written_is_seen_only_when_it_is_whole(storage: Home):
    storage.write("f/a", b"old")

    with storage.write_atomically("f/a") as path:
        with storage.filesystem.open_output_stream(path) as stream:
            stream.write(b"new")
        during = storage.read("f/a"), storage.files("f")

    assert during == (b"old", ["a"])
    assert (storage.read("f/a"), storage.files("f")) == (b"new", ["a"])


def test_a_full_disk_is_retriable_and_says_where_to_make_room(tmp_path: Path):
    storage = Home(str(tmp_path))
    storage.write("p/state/CURRENT", b"old")
    storage.filesystem = FullDisk(storage.filesystem, room=2)

    with pytest.raises(RetriableError) as error:
        storage.write("p/state/CURRENT", b"new")

    assert error.value.message == ("the storage could not read or write 'p/state/CURRENT': No space left on device")
    assert error.value.next_step == (
        f"make room or repair {tmp_path}, then retry the task: nothing is lost or sent twice"
    )
    assert storage.read("p/state/CURRENT") == b"old"
    assert [path.name for path in (tmp_path / "p" / "state").iterdir()] == ["CURRENT"]


@pytest.mark.parametrize("root", ["nosuch://bucket/folder", "fsspec+nosuch://bucket"])
def test_an_address_of_no_known_filesystem_is_a_configuration_error(root: str):
    with pytest.raises(ConfigurationError, match="cannot be opened") as error:
        Home(root)

    assert "CONTEXTURE_HOME" in error.value.next_step


@pytest.mark.parametrize("credentials", ["key:s3cr3t@", "key:s3/cr3t@", "key:s3cr3t/@"])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_address_with_credentials_is_refused_without_quoting_them(scheme: str, credentials: str):
    with pytest.raises(ConfigurationError) as error:
        Home(f"{scheme}://{credentials}bucket/home")

    assert "cr3t" not in f"{error.value} {error.value.context}"
    assert "CONTEXTURE_HOME" in error.value.next_step


def test_what_follows_the_question_mark_of_an_address_is_not_quoted():
    with pytest.raises(ConfigurationError, match=r"'s3://bucket/home' cannot be opened") as error:
        Home("s3://bucket/home?secret_key=s3cr3t")

    assert "s3cr3t" not in f"{error.value} {error.value.context} {error.value.__cause__}"


def test_an_object_store_that_is_away_when_it_is_opened_is_retriable(monkeypatch: pytest.MonkeyPatch):
    reason = (
        "When resolving region for bucket 'bucket': AWS Error NETWORK_CONNECTION during HeadBucket operation: "
        "curlCode: 6, Could not resolve hostname"
    )
    _opening_fails(monkeypatch, reason)

    with pytest.raises(RetriableError) as error:
        Home("s3://bucket/home")

    assert error.value.message == f"the storage 's3://bucket/home' does not respond: {reason}"
    assert error.value.next_step == (
        "check that it runs and can be reached from here, then retry the task: nothing is lost or sent twice"
    )


def test_a_bucket_that_is_not_there_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch):
    _opening_fails(monkeypatch, "Bucket 'bucket' not found")

    with pytest.raises(ConfigurationError, match="cannot be opened: Bucket 'bucket' not found"):
        Home("s3://bucket/home")


def test_addresses_keep_their_form(tmp_path: Path):
    assert Home(str(tmp_path)).uri("a/b") == f"{tmp_path}/a/b"
    assert Home(tmp_path.as_uri()).uri("a/b") == f"file://{tmp_path}/a/b"
    assert Home(f"{tmp_path.as_uri()}/").uri("a") == f"file://{tmp_path}/a"


def test_the_home_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CONTEXTURE_HOME", raising=False)
    assert home_uri() == "var"

    monkeypatch.setenv("CONTEXTURE_HOME", "")
    assert home_uri() == "var"

    monkeypatch.setenv("CONTEXTURE_HOME", "s3://bucket/contexture")
    assert home_uri() == "s3://bucket/contexture"


def _opening_fails(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    def from_uri(address: str) -> None:
        raise OSError(reason)

    monkeypatch.setattr(file_tree.fs, "FileSystem", SimpleNamespace(from_uri=from_uri))


def _begin_writing(storage: Home, name: str) -> None:
    with storage.write_atomically(name) as path:
        with storage.filesystem.open_output_stream(path) as stream:
            stream.write(b"new")
        raise ZeroDivisionError


def _everything(storage: Home, folder: str) -> list[str]:
    from pyarrow import fs

    found = storage.filesystem.get_file_info(fs.FileSelector(storage.path(folder)))
    return sorted(info.base_name for info in found)


def test_the_digest_of_a_file_is_that_of_its_bytes(storage):
    storage.write("a/b.bin", b"abc")
    assert storage.sha256("a/b.bin") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
