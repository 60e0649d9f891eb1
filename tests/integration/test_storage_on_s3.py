"""What `Home` promises, held by a server with S3's interface; and what that costs in requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from contexture.errors import RetriableError
from contexture.storage.home import Home
from tools.bench.engines.counted_store import CountedStore
from tools.cluster.evidence import variables
from tools.cluster.moments import await_found
from tools.cluster.object_store import installed

PARTS_BYTES = 12 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountedStore]:
    # Only what a registry does not give is left out: a server that is there and does not start fails the tests.
    try:
        installed(print)
    except RetriableError as error:
        pytest.skip(f"no S3 server could be installed: {error.message[:200]}")
    with CountedStore(tmp_path_factory.mktemp("s3") / "store.log", print) as server, variables(server.variables):
        yield server


@pytest.fixture
def storage(store: CountedStore) -> Home:
    return Home(f"{store.home}/{uuid4().hex}")


def asked(store: CountedStore, act: Callable[[], object]) -> dict[str, int]:
    mark = store.mark()
    act()
    # The server notes a request after it has answered, and each in a thread of its own.
    httpx.head(f"{store.url}/last")
    await_found(lambda: store.since(mark) if store.since(mark).requests > 1 else None, "note of the request", 60)
    return {name: number for name, number in store.since(mark).by_method.items() if name != "HEAD"}


def test_a_small_file_is_one_request(store: CountedStore, storage: Home):
    assert asked(store, lambda: storage.write("p/state/versions/1.json", b"one")) == {"PUT": 1}
    assert asked(store, lambda: storage.write("p/state/versions/1.json", b"two")) == {"PUT": 1}
    assert storage.read("p/state/versions/1.json") == b"two"
    assert storage.files("p/state/versions") == ["1.json"]
    assert storage.folders("p") == ["state"]


def test_a_file_of_parts_is_there_as_a_whole_and_nothing_beside_it(storage: Home):
    content = bytes(range(256)) * (PARTS_BYTES // 256)

    storage.write("f/large", content)

    assert storage.read("f/large") == content
    assert everything(storage, "f") == ["large"]


@pytest.mark.parametrize("size", [3, PARTS_BYTES])
def test_an_error_while_a_file_is_being_replaced_leaves_the_old_one_and_no_rest(storage: Home, size: int):
    storage.write("f/a", b"old")

    with pytest.raises(ZeroDivisionError):
        begin_writing(storage, "f/a", size)

    assert storage.read("f/a") == b"old"
    assert everything(storage, "f") == ["a"]


def test_a_table_is_seen_only_when_it_is_whole(storage: Home):
    storage.write("f/rows.parquet", b"old")

    with storage.write_atomically("f/rows.parquet") as path:
        pq.write_table(pa.table({"number": [1, 2, 3]}), path, filesystem=storage.filesystem)
        during = storage.read("f/rows.parquet"), storage.files("f")

    assert during == (b"old", ["rows.parquet"])
    assert pq.read_table(storage.path("f/rows.parquet"), filesystem=storage.filesystem).num_rows == 3
    assert everything(storage, "f") == ["rows.parquet"]


def test_what_is_removed_is_gone_with_all_below_it(storage: Home):
    storage.write("f/a", b"1")
    storage.write("f/g/b", b"2")

    storage.remove("f/a")
    assert (storage.files("f"), storage.exists("f/g")) == ([], True)
    storage.remove("f")
    storage.remove("f")

    assert not storage.exists("f/g/b")


def test_a_missing_bucket_is_reported_by_the_write(store: CountedStore):
    storage = Home("s3://nowhere/home")

    with pytest.raises(RetriableError, match=r"could not read or write 'p/a'"):
        storage.write("p/a", b"1")


def begin_writing(storage: Home, name: str, size: int) -> None:
    with storage.write_atomically(name) as path, storage.filesystem.open_output_stream(path) as stream:
        stream.write(b"n" * size)
        raise ZeroDivisionError


def everything(storage: Home, folder: str) -> list[str]:
    found = storage.filesystem.get_file_info(fs.FileSelector(storage.path(folder)))
    return sorted(info.base_name for info in found if info.base_name)
