"""What a notifier is told when its request can't be taken."""

from __future__ import annotations

from contexture.errors import RejectedError

BAD_REQUEST = 400
TOO_LARGE = 413
UNSUPPORTED_MEDIA = 415


class NotificationError(RejectedError):
    """The notification can't be taken as it is, and sending it again is useless; nothing of it was taken."""

    @property
    def status(self) -> int:
        """The HTTP status that answers it."""
        return int(str(self.context.get("status", BAD_REQUEST)))


def refused(message: str, next_step: str, status: int = BAD_REQUEST) -> NotificationError:
    """The error that answers a request with `status`."""
    return NotificationError(message, next_step=next_step, status=status)
