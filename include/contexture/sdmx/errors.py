"""Why a message can't be split."""

from __future__ import annotations

from contexture.errors import RejectedError


class StructureMessageError(RejectedError):
    """These bytes are no structure message that can be split: broken, forbidden, or something else.

    What was split before it was raised is right, but it isn't all: nothing may be taken for absent.
    """


class UnsplittableFormatError(StructureMessageError):
    """The format is known and can't be split into artefacts: ask the registry for one artefact at a time."""


class LimitExceededError(StructureMessageError):
    """The message is deeper or larger than allowed."""
