"""In which forms structures are read to be measured, and what is sent of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from contexture.cli.record_sizes import Message
from contexture.sources.sdmx import Artefact, Format
from contexture.sources.sdmx.transcoding import source_formats, target_format, transcode


@dataclass(frozen=True, slots=True)
class Forms:
    """The form of a publication, and those that are converted into it.

    Attributes:
        media_type: the form.
        target: what others are converted into; None where nothing is.
    """

    media_type: str
    target: Format | None = None

    @classmethod
    def of(cls, media_type: str, *, converts: bool) -> Forms:
        """The forms of a publication that allows conversions, or does not."""
        return cls(media_type, target_format(media_type) if converts else None)

    @property
    def asked_for(self) -> tuple[str, ...]:
        """Media types, the one that is wanted first."""
        others = source_formats(self.target) if self.target else ()
        return (self.media_type, *(each.media_type for each in others))

    def sent(self, artefact: Artefact) -> tuple[int, Message]:
        """Size and content of the message that would be sent.

        Raises:
            NotTranscodableError: it would have to be converted, and can't be.
        """
        if self.target and artefact.format is not self.target:
            artefact = transcode(artefact, self.target, datetime.now(UTC)).artefact
        size = len(artefact.envelope.before) + artefact.size + len(artefact.envelope.after)
        return size, artefact.message
