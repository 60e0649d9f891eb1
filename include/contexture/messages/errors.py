"""The error of bodies and keys."""

from __future__ import annotations

from contexture.errors import RejectedError


class MessageError(RejectedError):
    """This event can't be written in the publication's message format."""
