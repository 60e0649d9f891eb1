"""What a registry's refusals and silences mean."""

from __future__ import annotations

from contexture.errors import ConfigurationError, RetriableError


class RegistryUnavailableError(RetriableError):
    """The registry was away or ill for a moment: asking again soon is worth it."""


class IncompleteReplyError(RegistryUnavailableError):
    """An answer that is empty, or less than a whole message: it says nothing about what the registry holds."""


class ReplyTooLargeError(ConfigurationError):
    """An answer is larger than the connection allows: less at once may pass."""


class FormatNotOfferedError(ConfigurationError):
    """The registry answers in another format than it was asked for."""


class LogResetError(ConfigurationError):
    """The registry's log ends before what was already told of it: it is another log."""
