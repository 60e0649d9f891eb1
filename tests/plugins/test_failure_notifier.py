"""A run that failed is mailed about by a real SMTP conversation, once; nothing that goes wrong there adds a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from airflow.sdk import BaseNotifier  # noqa: E402
from airflow.sdk.exceptions import AirflowFailException  # noqa: E402

from builders.attempts import failed_send  # noqa: E402
from builders.outboxes import outbox, publication, records  # noqa: E402
from contexture.errors import ConfigurationError, RetriableError  # noqa: E402
from contexture.kafka.error_codes import fenced  # noqa: E402
from contexture.monitoring import RunTables  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.alerts.notifiers import FailureNotifier, VerificationNotifier  # noqa: E402
from contexture_airflow.steps.publish import AttemptsUsedUpError  # noqa: E402
from fakes.mail_server import MailServer  # noqa: E402

SetConnection = Callable[..., None]
PASSWORD = "s3cret-of-the-mailbox"
RUN = "manual__2026-03-01T12:00:00+00:00"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as running:
        yield running


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    for name in ("CONTEXTURE_DATABASE", "CONTEXTURE_MAIL_TO"):
        monkeypatch.delenv(name, raising=False)
    found = Home(str(tmp_path))
    outbox(found, publication(), 1, [records("secret-car")])
    found.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="good")
    found.publication("vehicles").attempts.keep(failed_send("outbox1", attempt=11, state="exhausted", next_at=None))
    return found


@pytest.fixture
def connected(server: MailServer, set_connection: SetConnection) -> MailServer:
    extra = {"from_email": "contexture@example.org", "disable_ssl": True, "disable_tls": True, "timeout": 5}
    set_connection("contexture_mail", conn_type="smtp", host="127.0.0.1", port=server.port, extra=extra)
    return server


def used_up() -> AirflowFailException:
    """As the publish task raises it."""
    try:
        try:
            raise AttemptsUsedUpError(
                "batch_ttl is used up after 11 attempts: no broker", next_step="fix the cause", alert="retries used up"
            )
        except RetriableError as error:
            raise AirflowFailException(str(error)) from error
    except AirflowFailException as raised:
        return raised


class BaseNotifierOfOthers(BaseNotifier):
    """A notifier as providers of Airflow have them."""

    template_fields = ("text",)
    texts: ClassVar[list[str]] = []

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        self.texts.append(self.text)


def context(
    exception: object = None, task_id: str = "publish", map_index: int = 1, run_id: str = RUN
) -> dict[str, Any]:
    url = "http://localhost:8080/dags/publish_vehicles/runs/x/tasks/publish/mapped/1?try_number=1"
    instance = SimpleNamespace(task_id=task_id, map_index=map_index, dag_id="publish_vehicles", log_url=url)
    return {"ti": instance, "dag_run": SimpleNamespace(run_id=run_id), "exception": exception}


def notify(*mail: str, **given: Any) -> None:
    FailureNotifier("vehicles", mail)(context(**given))


def test_the_mail_reaches_the_publications_people(storage: Home, connected: MailServer) -> None:
    notify("ops@example.org", "night@example.org", exception=used_up())
    (mail,) = connected.mails
    assert (mail.sender, mail.to) == ("contexture@example.org", ("ops@example.org", "night@example.org"))
    assert mail.message["Subject"] == "[Contexture] vehicles: retries used up (publish[1] failed)"
    assert "batch_ttl is used up after 11 attempts: no broker" in mail.body
    assert "<b>What to do next:</b> fix the cause" in mail.body
    assert "outbox outbox1 (run 1), approved" in mail.body
    assert "shard 1: attempt 11 of 11, exhausted" in mail.body
    assert "/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00" in mail.body
    assert "secret-car" not in mail.body


def test_publications_that_name_no_address_use_the_variable(
    storage: Home, connected: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTURE_MAIL_TO", " a@example.org , b@example.org,")
    notify(exception=used_up())
    assert [mail.to for mail in connected.mails] == [("a@example.org", "b@example.org")]


def test_the_shards_of_a_run_and_a_next_run_that_says_the_same_mail_once(storage: Home, connected: MailServer) -> None:
    notify("ops@example.org", exception=used_up())
    notify("ops@example.org", exception=used_up(), map_index=0)
    notify("ops@example.org", exception=used_up(), run_id="manual__2")
    assert len(connected.mails) == 1


def test_something_else_that_happens_mails_at_once(storage: Home, connected: MailServer) -> None:
    notify("ops@example.org", exception=used_up())
    shrink = ConfigurationError("9 of 10 are gone", next_step="see the source", alert="too much vanished")
    notify("ops@example.org", exception=shrink, task_id="stage", map_index=-1, run_id="manual__2")
    assert [mail.message["Subject"] for mail in connected.mails] == [
        "[Contexture] vehicles: retries used up (publish[1] failed)",
        "[Contexture] vehicles: too much vanished (stage failed)",
    ]


def test_being_overtaken_recovers_by_itself_and_sends_an_alert_only_when_it_happens_again(
    storage: Home, connected: MailServer
) -> None:
    for run_id in ("manual__1", "manual__1", "manual__2", "manual__3"):
        notify("ops@example.org", exception=fenced("another producer"), run_id=run_id)
    (mail,) = connected.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: another sender took over (publish[1] failed)"
    assert "manual__2" in mail.body


def test_a_replica_that_differs_sends_an_alert_to_the_publications_people_and_is_no_failed_run(
    storage: Home, connected: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "publications"
    files.mkdir()
    written = publication(notify={"mail": ["ops@example.org"]}).model_dump_json(exclude_defaults=True)
    (files / "vehicles.yaml").write_text(written)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(files))
    differs = ConfigurationError("vehicles: 3 extra", next_step="see the report", alert="replica differs")
    given = context(differs, task_id="verify", map_index=0) | {"task": SimpleNamespace(publication="vehicles")}
    VerificationNotifier()(given)
    (mail,) = connected.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: replica differs (verify[0] failed)"
    assert "Verifying only reads: neither topics nor state were changed by it." in mail.body
    store = RunTables.of_home(storage.root)
    assert store is not None
    assert store.runs("vehicles") == []


def test_any_notifier_of_airflow_is_called_with_the_alert(storage: Home, connected: MailServer) -> None:
    path = f"{BaseNotifierOfOthers.__module__}.{BaseNotifierOfOthers.__qualname__}"
    calls = [
        {"notifier": f"{path}", "arguments": {"text": "{{ alert.kind }} | {{ alert.subject }}"}},
        {"notifier": "no.such.Notifier", "arguments": {}},
        {"notifier": f"{path}", "arguments": {"text": "{{ alert.text }}"}},
    ]
    BaseNotifierOfOthers.texts.clear()
    FailureNotifier("vehicles", (), calls)(context(used_up()))
    FailureNotifier("vehicles", (), calls)(context(used_up()))
    first, second = BaseNotifierOfOthers.texts
    assert first == "retries used up | [Contexture] vehicles: retries used up (publish[1] failed)"
    assert "What to do next: fix the cause" in second
    assert connected.mails == []


def test_what_is_no_notifier_is_never_called(storage: Home, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    touch = {"notifier": "subprocess.Popen", "arguments": {"args": ["touch", str(tmp_path / "made")]}}
    FailureNotifier("vehicles", (), [touch])(context(used_up()))
    assert not (tmp_path / "made").exists()
    assert "subprocess.Popen is not a notifier of Airflow" in "".join(capfd.readouterr())


def test_errors_of_others_are_named_and_not_quoted(storage: Home, connected: MailServer) -> None:
    notify("ops@example.org", exception=ValueError("plate ABC-123"), task_id="stage", map_index=-1)
    (mail,) = connected.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: stage failed"
    assert "ValueError, see the log" in mail.body
    assert "ABC-123" not in mail.body


def test_a_task_that_was_lost_is_named_as_such(storage: Home, connected: MailServer) -> None:
    notify("ops@example.org")
    assert "it was killed, or its machine was lost" in connected.mails[0].body


def test_without_any_address_nothing_is_sent(storage: Home, connected: MailServer) -> None:
    notify(exception=used_up())
    assert connected.mails == []


def test_the_operational_tables_hear_of_it_in_any_case(storage: Home) -> None:
    notify(exception=used_up())
    store = RunTables.of_home(storage.root)
    assert store is not None
    (run,) = store.runs("vehicles")
    assert (run.run_id, run.state, run.failed_task) == (RUN, "failed", "publish[1]")
    assert run.message == "batch_ttl is used up after 11 attempts: no broker. Next: fix the cause"


def test_a_mail_server_that_refuses_is_logged_and_asked_again_next_time(
    storage: Home, connected: MailServer, capfd: pytest.CaptureFixture[str]
) -> None:
    connected.refuse = True
    notify("unknown@example.org", exception=used_up())
    connected.refuse = False
    notify("ops@example.org", exception=used_up())
    assert [mail.to for mail in connected.mails] == [("ops@example.org",)]


def test_without_a_connection_or_a_server_the_task_fails_no_further(
    storage: Home, set_connection: SetConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    notify("ops@example.org", exception=used_up())
    fields = {"conn_type": "smtp", "host": "127.0.0.1", "port": 9, "login": "contexture", "password": PASSWORD}
    set_connection("contexture_mail", **fields, extra={"disable_ssl": True, "timeout": 1})
    notify("ops@example.org", exception=used_up())
    logged = "".join(capfd.readouterr())
    assert logged.count("Alerting by mail to 1 addresses has failed") == 2
    assert PASSWORD not in logged
