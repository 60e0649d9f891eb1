"""Documents on storage, and the check that this Contexture knows their format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from contexture.errors import ConfigurationError, DefectError

if TYPE_CHECKING:
    from contexture.storage.file_tree import FileTree


class StoredDocument(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> bytes:
        """The document as indented UTF-8 JSON."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def from_file(cls, storage: FileTree, path: str) -> Self:
        """The document in a file.

        Raises:
            FileNotFoundError: there is no such file.
            DefectError: it holds something else.
            UnknownFormatError: another version of Contexture wrote it.
            RetriableError: the storage did not answer.
        """
        content = storage.read(path)
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            # `from None`: pydantic's words quote the content.
            raise DefectError(
                f"{path} cannot be read as {cls.__name__}",
                next_step="restore the file from a backup, or see the how-to on recovering; report this if nothing "
                "has damaged the storage",
                path=path,
                problems=error.error_count(),
            ) from None

    @classmethod
    def find_file(cls, home: FileTree, path: str) -> Self | None:
        """Returns the document in a file, or None where there is no such file. Raises otherwise as `from_file`."""
        try:
            return cls.from_file(home, path)
        except FileNotFoundError:
            return None


class UnknownFormatError(ConfigurationError):
    """Something was written by another version of Contexture, in a format that this one does not read."""


class Versioned(StoredDocument):
    """A document that says of which format it is.

    `FORMAT` is what this Contexture writes and reads: it is raised when a document changes in a way that an earlier
    Contexture could not read. `FORMAT_MEMBER` is the name of the member that says it.
    """

    FORMAT: ClassVar[int] = 1
    FORMAT_MEMBER: ClassVar[str] = "format"

    @model_validator(mode="before")
    @classmethod
    def _check_format(cls, given: Any) -> Any:
        if isinstance(given, dict):
            check_format(cls.__name__, given.get(cls.FORMAT_MEMBER), cls.FORMAT)
        return given

    @classmethod
    def check_file(cls, home: FileTree, path: str) -> None:
        """Checks the format of one file; passes where there is none, or where its reader reports that it is broken.

        Raises:
            UnknownFormatError: another version of Contexture wrote it.
        """
        try:
            read = json.loads(home.read(path))
        except (FileNotFoundError, ValueError, RecursionError):
            return
        if isinstance(read, dict):
            check_format(path, read.get(cls.FORMAT_MEMBER), cls.FORMAT)


def check_format(what: str, found: object, known: int) -> None:
    """Checks that a format is the one that this Contexture reads; what says none is taken for it.

    Raises:
        UnknownFormatError: `found` is another number than `known`.
    """
    if isinstance(found, int) and found != known:
        is_later = found > known
        raise UnknownFormatError(
            f"this home was written by {'a later' if is_later else 'an earlier'} Contexture: {what} is of format "
            f"{found}, and this one reads {known}",
            next_step="install that version here too, or go back to the copy of the home that was made before "
            "(docs/how-to/upgrade.md)"
            if is_later
            else "go back to that version, or give this one an empty home and make state from the topics "
            "(docs/how-to/upgrade.md)",
            found=found,
            known=known,
        )
