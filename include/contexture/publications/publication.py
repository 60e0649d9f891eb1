"""The publication: one configured flow from a source to Kafka, as its YAML file describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StrictStr,
    field_validator,
    model_validator,
)

from contexture.errors import ConfigurationError, DefectError
from contexture.publications.checks import (
    ENTITY_CHECKS,
    FOR_OPERATIONS,
    OPERATIONS_CHECKS,
    STRUCTURE_CHECKS,
    Check,
)
from contexture.publications.delivery import (
    Batches,
    EntityBatches,
    EntityMessage,
    EventMessage,
    EventPublish,
    Message,
    Publish,
    SizedPublish,
    StructureMessage,
    StructurePublish,
)
from contexture.publications.fields import (
    ChangesNoRecord,
    ChangesRecords,
    OneOrMany,
    Positive,
    PublicationModel,
    Schedule,
)
from contexture.publications.problems import ModelProblemsError, looks_secret
from contexture.publications.quality import EntityQuality, Quality
from contexture.publications.source import STRUCTURE_FORM, NgsiSource, OperationsSource, SdmxSource, Source
from contexture.publications.topics import EntityTopics, EventTopics, StructureTopics, Topics

MailAddress = Annotated[StrictStr, Field(pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$")]
ImportPath = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]


class NotifierCall(PublicationModel):
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
        # All users can read a publication file, and its arguments are stored with the DAG.
        for name in arguments:
            if looks_secret(name) and not name.endswith("_conn_id"):
                raise ValueError(f"{name!r} looks like a secret: put it into an Airflow connection, and name that here")
        return arguments


class Notify(PublicationModel):
    """Who hears of runs that failed or are late."""

    mail: Annotated[tuple[MailAddress, ...], OneOrMany, ChangesNoRecord("who is alerted")] = Field(
        (), description="Addresses; empty: those of CONTEXTURE_MAIL_TO. Sent by the Airflow connection contexture_mail"
    )
    notifiers: Annotated[tuple[NotifierCall, ...], ChangesNoRecord("who is alerted")] = Field(
        (), description="Notifiers of Airflow, called in addition to the mail: each with `notifier` and `arguments`"
    )
    published_within_minutes: Annotated[Positive | None, ChangesNoRecord("who is alerted about delays")] = Field(
        None, description="Alert when a run has not concluded so long after it was queued; null: never"
    )


_TIMING = ChangesNoRecord("when, not what")

StartPolicy = Literal["none", "pending", "full"]

# The longest topic made from the name is `contexture.ledger.<name>.backfill`, well below Kafka's 249 characters.
_NAME: Final = r"[a-z0-9][a-z0-9-]{0,199}"
Name = Annotated[StrictStr, Field(pattern=f"^{_NAME}$")]


def check_name(name: str) -> str:
    """Returns the name of a publication, which is also that of its file.

    Raises:
        ConfigurationError: no publication can have it.
    """
    if re.fullmatch(_NAME, name) is None:
        raise ConfigurationError(
            f"{name!r} is not a name of a publication", next_step="use lower-case letters, digits and hyphens"
        )
    return name


class Resync(PublicationModel):
    """What a start of Contexture and a change of this file set off."""

    on_startup: Annotated[StartPolicy, _TIMING] = Field(
        "pending", description="none, pending: finish what is prepared, or full"
    )
    on_config_change: Annotated[StartPolicy, _TIMING] = Field(
        "full", description="none, pending: finish what is prepared, or full"
    )


class EventResync(Resync):
    """What a start of Contexture and a change of the file of its own events set off."""

    on_config_change: Annotated[StartPolicy, _TIMING] = Field(
        "pending", description="none, pending: finish what is prepared, or full"
    )


class Retention(PublicationModel):
    """How long concluded runs are kept."""

    archive_days: Annotated[Positive, ChangesNoRecord("how long runs are kept")] = Field(
        30, description="Days that landing and outbox of concluded runs are stored for backfills"
    )


class Publication(PublicationModel):
    """One configured flow: a source, a selection, topics, batches, the form of records, and how they are sent.

    The subclass is chosen by `source.kind`, by `Publication(...)` and by every way to read one.

    Raises:
        pydantic.ValidationError: a value is wrong, several exclude each other, or one isn't supported yet.
    """

    model_config = ConfigDict(title="Contexture publication")

    checks: ClassVar[tuple[Check, ...]] = ()

    name: Annotated[Name, ChangesRecords("names the ledger and the state: another name is another publication")] = (
        Field(description="Lower-case letters, digits and hyphens; the DAG is publish_<name>")
    )
    description: Annotated[StrictStr, ChangesNoRecord("for people")] = Field("", description="One line for people")
    schedule: Annotated[Schedule | None, _TIMING] = Field(
        None, description="Five cron fields or a preset; null: only by hand"
    )
    source: Source = Field(description="What is read, and from where")
    topics: Topics = Field(Topics.model_construct(), description="Where records go")
    batches: Batches = Field(Batches.model_construct(), description="Batches and retries")
    message: Message = Field(Message.model_construct(), description="The form of records")
    publish: Publish = Field(Publish.model_construct(), description="How records are sent")
    quality: Quality = Field(Quality.model_construct(), description="Which data may pass")
    resync: Resync = Field(
        Resync.model_construct(), description="What a start of Contexture and a change of the file send"
    )
    retention: Retention = Field(Retention.model_construct(), description="How long runs are stored")
    notify: Notify = Field(Notify.model_construct(), description="Who is alerted about failures and delays")

    @property
    def dead_letter_topic(self) -> str | None:
        """Where records go that can never be sent; None where they stop the sending."""
        if self.publish.on_failure != "dead-letter":
            return None
        return self.publish.dead_letter_topic or f"contexture.dead-letter.{self.name}"

    @property
    def record_form(self) -> str:
        """The form of its records: `message.format`, of structures the media type."""
        return self.message.format

    @property
    def joins_lines(self) -> bool:
        """Whether several events may share a record, each a line of it."""
        return False

    @property
    def splits_by_attribute(self) -> bool:
        """Whether an event is one attribute rather than one entity."""
        return False

    @classmethod
    def of(cls, publication: Publication) -> Self:
        """Returns the publication as one of this class, for code that reads one kind of source.

        Raises:
            DefectError: it is of another kind.
        """
        if not isinstance(publication, cls):
            raise DefectError(
                f"{publication.name} reads another kind of source than {cls.__name__}", next_step="report this"
            )
        return publication

    def has_meaning(self, section: str, key: str) -> bool:
        """Whether a key of a section means something for this kind of source."""
        return True

    def __new__(cls, **values: object) -> Self:
        """Makes the class of the source's kind where `Publication` itself is called."""
        return super().__new__(publication_class(values) if cls is Publication else cls)  # type: ignore[return-value]

    @model_validator(mode="wrap")
    @classmethod
    def _choose_class(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if cls is Publication and not isinstance(data, Publication):
            return publication_class(data).model_validate(data)  # type: ignore[return-value]
        return handler(data)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        findings = [finding for check in self.checks for finding in check(self)]
        if findings:
            raise ModelProblemsError(findings)
        return self


class NgsiPublication(Publication):
    """A publication that reads a context broker."""

    checks: ClassVar[tuple[Check, ...]] = ENTITY_CHECKS

    source: NgsiSource = Field(description="What is read, and from where")
    topics: EntityTopics = Field(EntityTopics.model_construct(), description="Where records go")
    batches: EntityBatches = Field(EntityBatches.model_construct(), description="Batches and retries")
    message: EntityMessage = Field(EntityMessage.model_construct(), description="The form of records")
    publish: SizedPublish = Field(SizedPublish.model_construct(), description="How records are sent")
    quality: EntityQuality = Field(EntityQuality.model_construct(), description="Which data may pass")

    @property
    def joins_lines(self) -> bool:
        """Whether the events of a batch share a record, each a line of it."""
        return self.message.format == "cygnus-lines" and self.batches.batch_size > 1

    @property
    def splits_by_attribute(self) -> bool:
        """Whether an event is one attribute rather than one entity."""
        return self.topics.data_model == "dm-by-attribute"


class SdmxPublication(Publication):
    """A publication that reads a structure registry."""

    checks: ClassVar[tuple[Check, ...]] = STRUCTURE_CHECKS

    source: SdmxSource = Field(description="What is read, and from where")
    topics: StructureTopics = Field(StructureTopics.model_construct(), description="Where records go")
    message: StructureMessage = Field(StructureMessage.model_construct(), description="The form of records")
    publish: StructurePublish = Field(StructurePublish.model_construct(), description="How records are sent")

    @property
    def record_form(self) -> str:
        """The media type that structures are asked for and sent in."""
        return self.source.media_type or STRUCTURE_FORM


class OperationsPublication(Publication):
    """A publication of what Contexture itself did."""

    checks: ClassVar[tuple[Check, ...]] = OPERATIONS_CHECKS

    source: OperationsSource = Field(description="What is read, and from where")
    topics: EventTopics = Field(EventTopics.model_construct(), description="Where records go")
    message: EventMessage = Field(EventMessage.model_construct(), description="The form of records")
    publish: EventPublish = Field(EventPublish.model_construct(), description="How records are sent")
    resync: EventResync = Field(
        EventResync.model_construct(), description="What a start of Contexture and a change of the file send"
    )

    def has_meaning(self, section: str, key: str) -> bool:
        """Whether a key that all publications have means something for Contexture's own events."""
        return key in FOR_OPERATIONS.get(section, ())


PUBLICATIONS: Final[Mapping[object, type[Publication]]] = {
    "ngsi": NgsiPublication,
    "sdmx": SdmxPublication,
    "operations": OperationsPublication,
}
"""The class of a publication by the kind of its source."""


def publication_class(data: object) -> type[Publication]:
    """The class for the value of a publication file; that of a context broker where the kind is missing or wrong."""
    source = data.get("source") if isinstance(data, Mapping) else None
    kind = source.get("kind") if isinstance(source, Mapping) else getattr(source, "kind", None)
    return PUBLICATIONS.get(kind, NgsiPublication) if isinstance(kind, str) else NgsiPublication
