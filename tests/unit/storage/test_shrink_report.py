"""What the guard against shrinking holds up is named for who decides, as far as a page shows it."""

from __future__ import annotations

from contexture.storage.home import Storage
from contexture.storage.shrink_report import SHOWN, ShrinkReport, read_shrink_report, write_shrink_report


def test_the_first_identities_are_kept_and_all_of_them_counted(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    identities = [f"car{number}".encode() for number in range(SHOWN + 1)]
    write_shrink_report(storage, "vehicles", "run1", count=900, held=1000, limit=200, identities=identities)
    found = read_shrink_report(storage, "vehicles", "run1")
    assert found is not None
    assert (found.count, found.held, found.limit, len(found.identities)) == (900, 1000, 200, SHOWN)
    assert found.identities[:2] == ("car0", "car1")


def test_bytes_that_are_no_text_do_no_harm(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    write_shrink_report(storage, "vehicles", "run1", count=2, held=2, limit=0, identities=[b"\xff", "urn"])
    kept = ShrinkReport(count=2, held=2, limit=0, identities=("\ufffd", "urn"))
    assert read_shrink_report(storage, "vehicles", "run1") == kept


def test_a_run_that_was_not_held_up_has_none(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    assert read_shrink_report(storage, "vehicles", "run1") is None
    storage.write("vehicles/runs/run1/vanishing.json", b"{")
    assert read_shrink_report(storage, "vehicles", "run1") is None
