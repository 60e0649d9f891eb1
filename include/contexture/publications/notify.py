"""The part of a publication that says who hears of what needs a person."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue, StrictStr, field_validator

from contexture.publications.fields import OneOrMany, Positive, Section
from contexture.publications.problems import looks_secret

MailAddress = Annotated[StrictStr, Field(pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$")]
ImportPath = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]


class NotifierCall(Section):
    """A notifier of Airflow, and what it is made with."""

    notifier: ImportPath = Field(
        description="Where its class is, such as airflow.providers.slack.notifications.slack.SlackNotifier"
    )
    arguments: dict[str, JsonValue] = Field(
        {}, description="Its arguments; in templates, alert.subject, alert.text, alert.html and alert.kind"
    )

    @field_validator("arguments")
    @classmethod
    def _refuse_secrets(cls, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        # A publication file is read by everybody, and its arguments are stored with the DAG.
        for name in arguments:
            if looks_secret(name) and not name.endswith("_conn_id"):
                raise ValueError(f"{name!r} looks like a secret: put it into an Airflow connection, and name that here")
        return arguments


class Notify(Section):
    """Who hears of runs that failed or are late."""

    mail: Annotated[tuple[MailAddress, ...], OneOrMany] = Field(
        (), description="Addresses; empty: those of CONTEXTURE_MAIL_TO. Sent by the Airflow connection contexture_mail"
    )
    notifiers: tuple[NotifierCall, ...] = Field(
        (), description="Notifiers of Airflow, called beside the mail: each with `notifier` and `arguments`"
    )
    published_within_minutes: Positive | None = Field(
        None, description="Alert when a run has not concluded so long after it was queued; null: never"
    )
