"""Delivers an alert: by mail, and by the notifiers of Airflow that a publication names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, conf

if TYPE_CHECKING:
    from contexture.monitoring.alerts import Failure, Mail
    from contexture.publications import Publication
    from contexture.storage.publication_store import PublicationStore

MAIL_CONNECTION = "contexture_mail"
"""Airflow connection of type `smtp` that mails are sent by."""

MAIL_VARIABLE = "CONTEXTURE_MAIL_TO"
"""Environment variable with addresses, separated by commas, for publications that name none."""


@dataclass(frozen=True, slots=True)
class Audience:
    """The people that an alert goes to.

    Attributes:
        mail: addresses; when empty, those of the environment are used.
        notifiers: mappings with `notifier`, the path of a notifier's class, and `arguments` for its constructor.
    """

    mail: tuple[str, ...] = ()
    notifiers: tuple[Mapping[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, publication: Publication) -> Audience:
        """Returns the audience that a publication names."""
        notify = publication.notify
        return cls(notify.mail, tuple(each.model_dump(mode="json") for each in notify.notifiers))

    @classmethod
    def from_lists(cls, mail: Sequence[str], notifiers: Sequence[Mapping[str, Any]]) -> Audience:
        """Returns the audience from lists, as a serialized DAG has them."""
        return cls(tuple(mail), tuple(notifiers))

    def addresses(self) -> tuple[str, ...]:
        """Returns the addresses that get the mail."""
        given = os.environ.get(MAIL_VARIABLE, "")
        return self.mail or tuple(part.strip() for part in given.split(",") if part.strip())


def send_alert(failure: Failure, audience: Audience, store: PublicationStore, context: Any, log: Any) -> None:
    """Sends an alert once by each way that is configured; a way that fails is logged and stops no other."""
    from contexture.monitoring.alerts import AlertMemory, compose_alert

    memory = AlertMemory(store.alerts)
    if not memory.is_due(failure):
        log.info("No alert is sent: the next run recovers by itself, or the same alert was sent within the hour")
        memory.record(failure, sent=False)
        return
    mail = compose_alert(failure)
    done = [_send_by(way, name, log) for name, way in _ways(failure, mail, audience, context)]
    if not done:
        log.info("No alert is sent: notify.mail, notify.notifiers and %s are empty", MAIL_VARIABLE)
    if any(done):
        memory.record(failure, sent=True)


def airflow_address() -> str:
    """Returns the address of Airflow's pages, without a slash at its end."""
    return str(conf.get("api", "base_url", fallback="http://localhost:8080/")).rstrip("/")


def _ways(failure: Failure, mail: Mail, audience: Audience, context: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    to = audience.addresses()
    if to:
        yield f"mail to {len(to)} addresses", lambda: _send_mail(mail, to)
    for each in audience.notifiers:
        yield each["notifier"], lambda call=each: _call(call, failure, mail, context)  # type: ignore[misc]


def _send_by(way: Callable[[], object], name: str, log: Any) -> bool:
    try:
        way()
    except Exception:
        # The run has failed already, and an error of its alert must not hide the reason.
        log.exception("Alerting by %s has failed", name)
        return False
    log.info("Alerted by %s", name)
    return True


def _send_mail(mail: Mail, to: Sequence[str]) -> None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    with SmtpHook(smtp_conn_id=MAIL_CONNECTION) as server:
        sender = server.from_email or "contexture@localhost"
        server.send_email_smtp(to=list(to), subject=mail.subject, html_content=mail.html, from_email=sender)


def _call(call: Mapping[str, Any], failure: Failure, mail: Mail, context: Any) -> None:
    # Made anew each time: rendering its templates changes it.
    notifier = _notifier_class(call["notifier"])(**call["arguments"])
    alert = {"kind": str(failure.kind), "subject": mail.subject, "text": mail.text, "html": mail.html}
    notifier({**context, "alert": alert})


def _notifier_class(path: str) -> type[BaseNotifier]:
    """Returns the notifier's class; the author of a publication cannot call other installed code through it.

    Raises:
        ConfigurationError: there is no notifier of Airflow at this path.
    """
    from importlib import import_module

    from contexture.errors import ConfigurationError

    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"there is no notifier {path}", next_step="install its provider, or correct notify.notifiers"
        ) from error
    if not (isinstance(found, type) and issubclass(found, BaseNotifier)):
        raise ConfigurationError(
            f"{path} is not a notifier of Airflow", next_step="name a class derived from airflow.sdk.BaseNotifier"
        )
    return found
