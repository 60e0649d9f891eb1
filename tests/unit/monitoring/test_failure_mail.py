"""The mail about a failed run says what happened, what is safe, what waits and what to do, and holds no data."""

from __future__ import annotations

from pathlib import Path

from builders.attempts import failed_send
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring.alerts import AlertKind, Failure, PendingSend, compose_alert, pending_sends
from contexture.storage.home import Home


def failure(**changes: object) -> Failure:
    given: dict[str, object] = {
        "publication": "vehicles",
        "run_id": "scheduled__2026-03-01T12:00:00+00:00",
        "task": "publish[1]",
        "at": NOON,
        "happened": "the Kafka brokers did not respond for 300 s",
        "next_step": "check that the brokers run",
        "run_url": "http://airflow/dags/publish_vehicles/runs/scheduled__2026",
        "log_url": "http://airflow/log?try_number=1",
    }
    return Failure(**(given | changes))  # type: ignore[arg-type]


def test_a_failed_send_says_what_waits_and_that_nothing_is_lost() -> None:
    used_up = failed_send("abcd1234567890", attempt=11, state="exhausted", next_at=None)
    mail = compose_alert(failure(pending=(PendingSend("abcd1234567890", 12, "approved", (used_up,)),)))
    assert mail.subject == "[Contexture] vehicles: publish[1] failed"
    for part in (
        "The run scheduled__2026-03-01T12:00:00+00:00 of publication vehicles has failed.",
        "<b>What happened:</b> publish[1], 2026-03-01 12:00:00Z: the Kafka brokers did not respond for 300 s",
        "<b>What is safe:</b> Nothing is lost",
        "outbox abcd1234567890 (run 12), approved: contexture outbox show abcd12345678",
        "shard 1: attempt 11 of 11, exhausted: no broker. Next: wait",
        "<b>What to do next:</b> check that the brokers run",
        'href="http://airflow/dags/publish_vehicles/runs/scheduled__2026"',
    ):
        assert part in mail.html


def test_a_run_that_left_nothing_pending_says_so() -> None:
    assert "Nothing waits to be sent." in compose_alert(failure()).html


def test_the_kind_decides_the_subject_and_what_is_safe() -> None:
    mail = compose_alert(failure(kind=AlertKind.SHRINK_GUARD, task="stage"))
    assert mail.subject == "[Contexture] vehicles: too much vanished (stage failed)"
    assert "<b>What is safe:</b> Nothing was sent and nothing deleted" in mail.html


def test_a_run_that_is_late_has_no_task_and_no_log() -> None:
    mail = compose_alert(failure(kind=AlertKind.LATE, task="", log_url=""))
    assert mail.subject == "[Contexture] vehicles: not published in time"
    assert "publication vehicles is late." in mail.text
    assert "The log of the task" not in mail.text


def test_the_plain_text_says_the_same_as_the_mail() -> None:
    assert compose_alert(failure(kind=AlertKind.FORCED_STOP)).text.split("\n") == [
        "The run scheduled__2026-03-01T12:00:00+00:00 of publication vehicles has failed.",
        "What happened: publish[1], 2026-03-01 12:00:00Z: the Kafka brokers did not respond for 300 s",
        "What is safe: Nothing is lost: what is in Kafka stays there and is not sent twice, and what is not yet there "
        "waits in the outbox. The next run sends it before it reads anything new, with all its attempts available "
        "again. Until then nothing after it is sent, so that the order stays correct.",
        "What to do next: check that the brokers run",
        "The run: http://airflow/dags/publish_vehicles/runs/scheduled__2026",
        "The log of the task: http://airflow/log?try_number=1",
    ]


def test_no_mail_about_a_backfill_says_that_the_next_run_sends_its_outbox() -> None:
    waits = PendingSend("abcd1234567890", 1, "approved", (), of_backfill=True)
    backfill = compose_alert(failure(run_id="backfill__2026-03-01T00:00:00+00:00", pending=(waits,)))
    assert "The backfill&#x27;s own run alone sends it" in backfill.html
    assert "Nothing waits to be sent." in compose_alert(failure(pending=(waits,))).html


def test_a_verification_that_found_differences_is_no_failed_run_of_the_publication() -> None:
    mail = compose_alert(failure(kind=AlertKind.REPLICA_DIFFERS, task="verify", run_id="manual__1"))
    assert mail.subject == "[Contexture] vehicles: replica differs (verify failed)"
    assert mail.text.startswith(
        "Verifying the topics of publication vehicles has found differences (run manual__1).\nWhat happened: "
    )


def test_only_addresses_of_airflow_are_links() -> None:
    mail = compose_alert(failure(happened="https://evil.example", next_step="javascript:alert(1)"))
    assert mail.html.count("<a ") == 2


def test_names_and_texts_can_not_break_out() -> None:
    mail = compose_alert(failure(happened="<script>alert(1)</script>", run_id="a\nBcc: x@y", task='t"\r\nTo: x@y'))
    assert "<script>" not in mail.html
    assert "\n" not in mail.subject
    assert "\r" not in mail.subject


def test_pending_are_the_outboxes_that_are_not_at_their_end_with_what_failed_of_them(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="good")
    storage.publication("vehicles").outboxes.set_status("outbox2", "rejected", reason="bad")
    log = storage.publication("vehicles").attempts
    log.keep(failed_send("outbox1", shard=0, state="sent", next_at=None))
    log.keep(failed_send("outbox1", shard=1))
    (pending,) = pending_sends(storage.publication("vehicles"))
    assert (pending.outbox, pending.status, pending.sends) == ("outbox1", "approved", (failed_send("outbox1"),))
    assert pending.of_backfill is False


def test_pending_outboxes_of_backfills_are_known_as_such_and_damaged_ones_are_listed(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    outbox(storage, publication(), 1, [records("car1")])
    outbox(storage, publication(), 2, [records("car1")], mode="backfill", interval=(NOON, NOON))
    storage.write("vehicles/outbox/outbox1/manifest.json", b"")
    assert [(each.outbox, each.of_backfill) for each in pending_sends(storage.publication("vehicles"))] == [
        ("outbox1", False),
        ("outbox2", True),
    ]
