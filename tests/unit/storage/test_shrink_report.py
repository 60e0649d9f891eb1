"""What the guard against shrinking holds up is named for who decides, as far as a page shows it."""

from __future__ import annotations

from contexture.storage.home import Home
from contexture.storage.shrink_report import SHOWN, ShrinkReport


def test_the_first_identities_are_kept_and_all_of_them_counted(tmp_path) -> None:
    storage = Home(str(tmp_path))
    identities = [f"car{number}".encode() for number in range(SHOWN + 1)]
    storage.publication("vehicles").run("run1").write_shrink_report(
        ShrinkReport.of(identities, count=900, held=1000, limit=200)
    )
    found = storage.publication("vehicles").run("run1").shrink_report()
    assert found is not None
    assert (found.count, found.held, found.limit, len(found.identities)) == (900, 1000, 200, SHOWN)
    assert found.identities[:2] == ("car0", "car1")


def test_bytes_that_are_no_text_do_no_harm(tmp_path) -> None:
    storage = Home(str(tmp_path))
    storage.publication("vehicles").run("run1").write_shrink_report(
        ShrinkReport.of([b"\xff", "urn"], count=2, held=2, limit=0)
    )
    kept = ShrinkReport(count=2, held=2, limit=0, identities=("\ufffd", "urn"))
    assert storage.publication("vehicles").run("run1").shrink_report() == kept


def test_a_run_that_was_not_held_up_has_none(tmp_path) -> None:
    storage = Home(str(tmp_path))
    assert storage.publication("vehicles").run("run1").shrink_report() is None
    storage.write("vehicles/runs/run1/shrink.json", b"{")
    assert storage.publication("vehicles").run("run1").shrink_report() is None
