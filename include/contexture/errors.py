"""Errors by what the caller should do about them.

    ContextureError
    ├── RetriableError       the outside world was not ready: the same call may work later
    ├── ConfigurationError   a person must change a file, a connection or a permission
    ├── RejectedError        this piece of data cannot be published: quarantine it and continue
    └── DefectError          Contexture itself is wrong: report it

Every error carries a sentence that says what to do next, and structured context for logs. Neither ever holds a secret
or the content of an entity or structure beyond its identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

Intent = str


class ContextureError(Exception):
    """Base of every error Contexture raises on purpose.

    Args:
        message: what happened, as one clause without a full stop.
        next_step: what the reader should do now.
        context: identifiers that help to find the place (publication, topic, path …); no secrets, no data.
    """

    intent: ClassVar[Intent] = "unknown"

    def __init__(self, message: str, *, next_step: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.context: Mapping[str, object] = context

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}. Next: {self.next_step}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process boundaries (Spark workers, Airflow's task runner); keyword arguments need help there.
        return _rebuild, (type(self), self.message, self.next_step, dict(self.context))

    def as_dict(self) -> dict[str, object]:
        """The error as a JSON-ready mapping; `from_dict` reads it back."""
        return {
            "intent": self.intent,
            "message": self.message,
            "next_step": self.next_step,
            "context": {name: str(value) for name, value in self.context.items()},
        }


class RetriableError(ContextureError):
    """Something outside was not ready (source, broker, storage); the same call may succeed later."""

    intent = "retry"


class ConfigurationError(ContextureError):
    """A person must change something before this can work; retrying is useless."""

    intent = "fix configuration"


class RejectedError(ContextureError):
    """This piece of data can never be published as it is; it belongs in quarantine."""

    intent = "data rejected"


class DefectError(ContextureError):
    """An assumption of Contexture itself does not hold."""

    intent = "bug"


_BY_INTENT: dict[Intent, type[ContextureError]] = {
    kind.intent: kind for kind in (RetriableError, ConfigurationError, RejectedError, DefectError)
}


def from_dict(data: Mapping[str, object]) -> ContextureError:
    """The error that `ContextureError.as_dict` described, as an instance of its intent's class."""
    kind = _BY_INTENT.get(str(data.get("intent")), DefectError)
    context = data.get("context")
    return _rebuild(
        kind,
        str(data.get("message", "unknown error")),
        str(data.get("next_step", "read the log of the task")),
        dict(context) if isinstance(context, Mapping) else {},
    )


def _rebuild(
    kind: type[ContextureError], message: str, next_step: str, context: Mapping[str, object]
) -> ContextureError:
    error = kind.__new__(kind)
    ContextureError.__init__(error, message, next_step=next_step, **context)
    return error
