"""The publication: one configured flow from a source to Kafka, as its YAML file describes it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StrictStr,
    field_validator,
    model_validator,
)

from contexture.publications.checks import check_combinations, not_yet_supported
from contexture.publications.defaults import mark_as_defaults, with_defaults
from contexture.publications.delivery import Batches, Message, Publish
from contexture.publications.fields import OneOrMany, Positive, Schedule, Section
from contexture.publications.problems import FindingsError, looks_secret
from contexture.publications.quality import Quality
from contexture.publications.source import Source
from contexture.publications.topics import Topics

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


StartPolicy = Literal["none", "pending", "full"]

# The longest topic made from the name is `contexture.ledger.<name>.backfill`, well below Kafka's 249 characters.
Name = Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,199}$")]


class Resync(Section):
    """What a start of Contexture and a change of this file set off."""

    on_startup: StartPolicy = Field("pending", description="none, pending: finish what is prepared, or full")
    on_config_change: StartPolicy = Field("full", description="none, pending: finish what is prepared, or full")


class Retention(Section):
    """How long concluded runs are kept."""

    archive_days: Positive = Field(
        30, description="Days that landing and outbox of concluded runs are kept for backfills"
    )


class Publication(Section):
    """One configured flow: a source, a selection, topics, batches, the form of records, and how they are sent.

    Raises:
        pydantic.ValidationError: a value is wrong, several exclude each other, or one isn't supported yet.
    """

    model_config = ConfigDict(defer_build=False, title="Contexture publication")

    name: Name = Field(description="Lower-case letters, digits and hyphens; the DAG is publish_<name>")
    description: StrictStr = Field("", description="One line for people")
    schedule: Schedule | None = Field(None, description="Five cron fields or a preset; null: only by hand")
    source: Source = Field(description="What is read, and from where")
    topics: Topics = Field(Topics.model_construct(), description="Where records go")
    batches: Batches = Field(Batches.model_construct(), description="Batches and retries")
    message: Message = Field(Message.model_construct(), description="The form of records")
    publish: Publish = Field(Publish.model_construct(), description="How records are sent")
    quality: Quality = Field(Quality.model_construct(), description="Which data may pass")
    resync: Resync = Field(Resync.model_construct(), description="What starts and changes set off")
    retention: Retention = Field(Retention.model_construct(), description="How long runs are kept")
    notify: Notify = Field(Notify.model_construct(), description="Who hears of failures and delays")

    @property
    def dead_letter_topic(self) -> str | None:
        """Where records go that can never be sent; None where they stop the sending."""
        if self.publish.on_failure != "dead-letter":
            return None
        return self.publish.dead_letter_topic or f"contexture.dead-letter.{self.name}"

    @model_validator(mode="wrap")
    @classmethod
    def _complete(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        completed, filled = with_defaults(data)
        publication = handler(completed)
        mark_as_defaults(publication, filled)
        return publication

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        findings = [*check_combinations(self), *not_yet_supported(self)]
        if findings:
            raise FindingsError(findings)
        return self
