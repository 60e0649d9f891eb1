"""The inbox: what was acknowledged stays, in its order, and nothing half."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.inbox_disk import FullShelf, PowerLostError, UncertainDisk
from contexture.errors import ConfigurationError, RetriableError
from contexture.storage.home import Home
from contexture.storage.inbox_files import (
    DiskOperations,
    InboxEntry,
    InboxFile,
    LocalInboxFolder,
    ObjectStoreInboxFolder,
    decode_file,
    encode_entry,
    encode_file,
)
from contexture.storage.inbox_writer import InboxUnavailableError, InboxWriter

HEADERS = {"fiware-service": "city", "fiware-servicepath": "/"}


class GatedShelf:
    """A shelf whose disk takes its time: each file waits until it is let through."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.files: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        self.begun.release()
        self.gate.acquire()
        self.files[name] = content

    def used_bytes(self) -> int:
        return 0

    def newest_us(self) -> int:
        return 0


def bodies(files: dict[str, bytes]) -> list[list[bytes]]:
    return [[entry.body for entry in decode_file(files[name], name)] for name in sorted(files)]


def write_all(shelf, contents, **settings) -> None:
    writer = InboxWriter(shelf, **settings)
    for future in [writer.submit(HEADERS, content) for content in contents]:
        future.result(timeout=10)
    writer.close()


def test_what_was_kept_is_read_in_order_as_it_came(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    write_all(storage.publication("air").open_inbox_folder(), [b"1", b"2\xff", b""])
    reader = storage.publication("air").inbox
    entries = list(reader.entries(reader.files()))
    assert [(entry.sequence, entry.headers, entry.body) for entry in entries] == [
        (0, HEADERS, b"1"),
        (1, HEADERS, b"2\xff"),
        (2, HEADERS, b""),
    ]


def test_an_inbox_that_never_got_anything_has_no_files(tmp_path: Path) -> None:
    assert Home(str(tmp_path)).publication("air").inbox.files() == ()


def test_an_object_store_keeps_whole_files(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    shelf = ObjectStoreInboxFolder(storage, "air/inbox")
    write_all(shelf, [b"1"])
    reader = storage.publication("air").inbox
    assert [entry.body for entry in reader.entries(reader.files())] == [b"1"]
    assert shelf.used_bytes() == storage.size(f"air/inbox/{reader.files()[0].name}")


def test_used_bytes_are_counted_while_a_run_takes_files_out(tmp_path: Path) -> None:
    class Emptied(Home):
        def files(self, folder: str, suffix: str = "") -> list[str]:
            # As it was a moment ago.
            return [*super().files(folder, suffix), "00000000000000001-a-000000000000"]

    storage = Emptied(str(tmp_path))
    storage.write("air/inbox/00000000000000002-a-000000000001", b"four")

    assert ObjectStoreInboxFolder(storage, "air/inbox").used_bytes() == 4


def test_a_file_whose_answer_was_lost_does_not_stay(tmp_path: Path) -> None:
    class Silent(Home):
        def write(self, relative: str, content: bytes) -> None:
            super().write(relative, content)
            raise RetriableError("no answer", next_step="wait")

    storage = Silent(str(tmp_path))

    with pytest.raises(InboxUnavailableError, match="no answer"):
        write_all(ObjectStoreInboxFolder(storage, "air/inbox"), [b"1"])

    assert storage.files("air/inbox") == []


def test_removing_takes_out_the_files_given_and_passes_over_those_gone(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    shelf, reader = storage.publication("air").open_inbox_folder(), storage.publication("air").inbox
    write_all(shelf, [b"1"])
    taken = reader.files()
    write_all(shelf, [b"2"])
    reader.remove(taken)
    reader.remove(taken)
    assert [entry.body for entry in reader.entries(reader.files())] == [b"2"]


def test_half_written_and_foreign_files_are_not_seen(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    steps = DiskOperations(tmp_path / "air/inbox")
    steps.write(f".{InboxFile(1, 'a', 0).name}", b"half")
    steps.write("notes.txt", b"mine")
    assert storage.publication("air").inbox.files() == ()


def test_what_arrives_while_the_disk_is_waited_for_goes_into_one_file() -> None:
    shelf = GatedShelf()
    writer = InboxWriter(shelf)
    first = writer.submit(HEADERS, b"1")
    assert shelf.begun.acquire(timeout=10)
    others = [writer.submit(HEADERS, body) for body in (b"2", b"3", b"4")]
    assert not first.done()
    shelf.gate.release(2)
    for future in (first, *others):
        future.result(timeout=10)
    writer.close()
    assert bodies(shelf.files) == [[b"1"], [b"2", b"3", b"4"]]


def test_times_rise_strictly_though_the_clock_stops_or_goes_back(tmp_path: Path) -> None:
    ticks = iter([5_000_000, 5_000_000, 3_000_000])
    storage = Home(str(tmp_path))
    write_all(storage.publication("air").open_inbox_folder(), [b"1", b"2", b"3"], clock_ns=lambda: next(ticks))
    reader = storage.publication("air").inbox
    assert [entry.received_at_us for entry in reader.entries(reader.files())] == [5000, 5001, 5002]


def test_arrivals_after_a_restart_follow_those_before_though_the_clock_went_back(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    before = iter([5_000_000_000, 5_000_000_000, 5_001_000_000])
    write_all(storage.publication("air").open_inbox_folder(), [b"1", b"2", b"3"], clock_ns=lambda: next(before))
    write_all(storage.publication("air").open_inbox_folder(), [b"4", b"5"], clock_ns=lambda: 4_000_000_000)
    reader = storage.publication("air").inbox
    assert [entry.body for entry in reader.entries(reader.files())] == [b"1", b"2", b"3", b"4", b"5"]


def test_arrivals_follow_what_was_the_last_in_a_group_and_not_its_first(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    storage.write(f"air/inbox/{InboxFile(10, 'a', 0, 90).name}", encode_file([]))
    write_all(storage.publication("air").open_inbox_folder(), [b"1"], clock_ns=lambda: 50_000)
    (_, file) = storage.publication("air").inbox.files()
    assert (file.time_us, file.last_us) == (91, 91)


def test_a_writer_whose_clock_is_behind_follows_what_another_one_has_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("contexture.storage.inbox_writer._MEASURE_SECONDS", 0)
    storage = Home(str(tmp_path))
    behind = InboxWriter(storage.publication("air").open_inbox_folder(), clock_ns=lambda: 1_000_000)
    behind.submit(HEADERS, b"1").result(timeout=10)
    write_all(storage.publication("air").open_inbox_folder(), [b"2"], clock_ns=lambda: 9_000_000)
    for body in (b"3", b"4"):  # the first of them lets the writer look at the inbox
        behind.submit(HEADERS, body).result(timeout=10)
    behind.close()
    reader = storage.publication("air").inbox
    assert [entry.body for entry in reader.entries(reader.files())] == [b"1", b"3", b"2", b"4"]


def test_entries_of_several_writers_are_ordered_by_time_sequence_and_writer(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    written = {
        InboxFile(10, "b", 0): [(10, 0, b"1"), (40, 1, b"5")],
        InboxFile(20, "a", 7): [(20, 7, b"2"), (30, 8, b"4")],
        InboxFile(30, "c", 3): [(30, 3, b"3")],
        InboxFile(50, "a", 9): [(50, 9, b"6")],
    }
    for file, entries in written.items():
        content = encode_file([encode_entry(InboxEntry(us, number, {}, body)) for us, number, body in entries])
        storage.write(f"air/inbox/{file.name}", content)
    reader = storage.publication("air").inbox
    assert b"".join(entry.body for entry in reader.entries(reader.files())) == b"123456"


def test_a_full_disk_is_reported_and_the_next_notification_is_kept_when_there_is_room() -> None:
    shelf = FullShelf()
    writer = InboxWriter(shelf)
    with pytest.raises(InboxUnavailableError, match="No space left on device"):
        writer.submit(HEADERS, b"1").result(timeout=10)
    shelf.full = False
    writer.submit(HEADERS, b"2").result(timeout=10)
    writer.close()
    assert bodies(shelf.files) == [[b"2"]]


def test_an_inbox_takes_no_more_than_its_maximum_and_takes_again_when_room_was_made(monkeypatch) -> None:
    monkeypatch.setattr("contexture.storage.inbox_writer._MEASURE_SECONDS", 0)
    shelf = FullShelf()
    shelf.full = False
    writer = InboxWriter(shelf, maximum_bytes=1000)
    writer.submit(HEADERS, b"x" * 800).result(timeout=10)
    with pytest.raises(InboxUnavailableError, match="full") as raised:
        writer.submit(HEADERS, b"y" * 800).result(timeout=10)
    assert raised.value.retry_after_seconds == 30
    shelf.files.clear()
    writer.submit(HEADERS, b"z" * 800).result(timeout=10)
    writer.close()
    assert bodies(shelf.files) == [[b"z" * 800]]


def test_after_one_that_does_not_fit_no_later_one_of_the_group_is_kept() -> None:
    shelf = GatedShelf()
    writer = InboxWriter(shelf, maximum_bytes=1000)
    writer.submit(HEADERS, b"1")
    assert shelf.begun.acquire(timeout=10)
    large, small = writer.submit(HEADERS, b"x" * 2000), writer.submit(HEADERS, b"2")
    shelf.gate.release(2)
    assert isinstance(large.exception(timeout=10), InboxUnavailableError)
    assert isinstance(small.exception(timeout=10), InboxUnavailableError)
    writer.close()
    assert bodies(shelf.files) == [[b"1"]]


def test_more_than_may_wait_in_memory_is_refused_at_once() -> None:
    shelf = GatedShelf()
    writer = InboxWriter(shelf, maximum_waiting_bytes=200)
    writer.submit(HEADERS, b"1")
    assert shelf.begun.acquire(timeout=10)
    writer.submit(HEADERS, b"2")
    with pytest.raises(InboxUnavailableError, match="slower"):
        writer.submit(HEADERS, b"x" * 150)
    shelf.gate.release(2)
    writer.close()
    assert bodies(shelf.files) == [[b"1"], [b"2"]]


def test_who_went_away_before_the_disk_was_asked_leaves_nothing() -> None:
    shelf = GatedShelf()
    writer = InboxWriter(shelf)
    writer.submit(HEADERS, b"1")
    assert shelf.begun.acquire(timeout=10)
    assert writer.submit(HEADERS, b"2").cancel()
    shelf.gate.release(2)
    writer.close()
    assert bodies(shelf.files) == [[b"1"]]


def test_a_closed_writer_takes_no_more() -> None:
    writer = InboxWriter(GatedShelf())
    writer.close()
    with pytest.raises(InboxUnavailableError):
        writer.submit(HEADERS, b"1")


class FailingSteps(DiskOperations):
    """A disk whose folder can't be made durable."""

    def sync_folder(self) -> None:
        raise OSError(5, "Input/output error")


def test_nothing_stays_of_a_file_whose_name_could_not_be_made_durable(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output"):
        LocalInboxFolder(FailingSteps(tmp_path / "inbox")).put("a", b"1")
    assert list((tmp_path / "inbox").iterdir()) == []


@given(st.integers(0, 16), st.integers(0, 2**32))
def test_a_crash_between_any_two_steps_loses_nothing_acknowledged_and_shows_nothing_half(
    steps: int, survival: int
) -> None:
    choices = iter(f"{survival:033b}" * 4)
    disk = UncertainDisk(steps, lambda: next(choices) == "1")
    shelf = LocalInboxFolder(disk)
    acknowledged: list[bytes] = []
    try:
        for number in range(4):
            content = encode_file([encode_entry(InboxEntry(number, number, HEADERS, b"%d" % number))])
            shelf.put(InboxFile(number, "a", number).name, content)
            acknowledged.append(b"%d" % number)
    except PowerLostError:
        pass
    found = [body for file in bodies(disk.after_power_returns()) for body in file]
    # The one that was under way may be there, whole, though no sender received a confirmation.
    assert found in (acknowledged, [*acknowledged, b"%d" % len(acknowledged)])


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.data())
def test_a_file_that_lost_its_end_or_a_bit_is_reported_and_gives_no_wrong_entry(contents, data) -> None:
    entries = [InboxEntry(number, number, HEADERS, body) for number, body in enumerate(contents)]
    whole = encode_file([encode_entry(entry) for entry in entries])
    cut = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = whole[:cut] + bytes([whole[cut] ^ 1 << bit]) + whole[cut + 1 :]
    for damaged in (whole[:cut], flipped):
        given_out: list[InboxEntry] = []
        with pytest.raises(ConfigurationError, match="damaged"):
            given_out.extend(decode_file(damaged, "f"))
        assert given_out == entries[: len(given_out)]
