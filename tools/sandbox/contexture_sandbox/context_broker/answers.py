"""The refusals of the broker, with the words of Orion."""

from __future__ import annotations

from contexture_sandbox.http_server import Answer, json_answer


class Refusal(Exception):  # noqa: N818 - the broker's own word; it never leaves the HTTP application
    """A request the broker does not grant.

    It is no `ContextureError`: it exists only inside the test broker, as the answer its client will see.

    Args:
        status: HTTP status.
        error: Orion's error name (`BadRequest`, `NotFound` …).
        description: Orion's free text, to be HTML-escaped already.
    """

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.error = error
        self.description = description

    def answer(self) -> Answer:
        """The refusal as the JSON answer Orion gives."""
        return json_answer({"error": self.error, "description": self.description}, status=self.status)


def bad_request(description: str) -> Refusal:
    """400, Orion's most frequent refusal."""
    return Refusal(400, "BadRequest", description)


def not_found(what: str = "entity") -> Refusal:
    """404 for an entity, a subscription or an attribute."""
    if what == "entity":
        return Refusal(404, "NotFound", "The requested entity has not been found. Check type and id")
    if what == "attribute":
        return Refusal(404, "NotFound", "The entity does not have such an attribute")
    return Refusal(404, "NotFound", f"The requested {what} has not been found. Check id")
