"""The error of events, which names the part that is wrong and never shows what stands in it."""

from __future__ import annotations

from contexture.errors import RejectedError


class CloudEventError(RejectedError):
    """What was given is no event by the CloudEvents specification; `attribute` names the part that isn't right."""

    @property
    def attribute(self) -> str:
        """The attribute, or `data`, `key`, `value`, `headers`."""
        return str(self.context.get("attribute", ""))


def refused(
    attribute: object, problem: str, *, next_step: str = "correct it where the event is made"
) -> CloudEventError:
    """The error that says what is wrong with an attribute, as in `id is missing`."""
    name = str(attribute).encode(errors="backslashreplace").decode()[:100]
    return CloudEventError(f"CloudEvents: {name!r} {problem}", next_step=next_step, attribute=name)
