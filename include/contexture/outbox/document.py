"""Documents on storage, and what tells one that a later Contexture has written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from contexture.errors import ConfigurationError, DefectError

if TYPE_CHECKING:
    from contexture.outbox.storage import Storage


class Document(BaseModel):
    """A frozen JSON document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> bytes:
        """The document as indented UTF-8 JSON."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def from_file(cls, storage: Storage, path: str) -> Self:
        """The document in a file.

        Raises:
            FileNotFoundError: there is no such file.
            DefectError: it holds something else.
            LaterFormatError: a later Contexture wrote it.
            RetriableError: the storage did not answer.
        """
        content = storage.read(path)
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            # `from None`: pydantic's words quote the content.
            raise DefectError(
                f"{path} can not be read as {cls.__name__}",
                next_step="restore the file from a backup, or see the how-to on recovering; report this if nothing "
                "has damaged the storage",
                path=path,
                problems=error.error_count(),
            ) from None


class LaterFormatError(ConfigurationError):
    """Something was written by a later Contexture; this one can't know what it means."""


class Versioned(Document):
    """A document that says of which format it is; one that doesn't was written before they did, and is of format 1.

    `FORMAT` is what this Contexture writes: it is raised when a document changes in a way that an earlier Contexture
    could not read. `FORMAT_MEMBER` is the name of the member that says it.
    """

    FORMAT: ClassVar[int] = 1
    FORMAT_MEMBER: ClassVar[str] = "format"

    @model_validator(mode="before")
    @classmethod
    def _no_later_one(cls, given: Any) -> Any:
        if isinstance(given, dict):
            refuse_later(cls.__name__, given.get(cls.FORMAT_MEMBER), cls.FORMAT)
        return given


def refuse_later(what: str, found: object, known: int) -> None:
    """Refuses a format that this Contexture does not know.

    Raises:
        LaterFormatError: `found` is a later format than `known`.
    """
    if isinstance(found, int) and found > known:
        raise LaterFormatError(
            f"this home was written by a later Contexture: {what} is of format {found}, and this one knows {known}",
            next_step="install that Contexture here too, or go back to the copy of the home that was made before the "
            "upgrade (docs/how-to/upgrade.md)",
            found=found,
            known=known,
        )
