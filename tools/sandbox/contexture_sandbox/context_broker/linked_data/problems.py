"""Refusals as RFC 7807 problems, which NGSI-LD prescribes (clause 6.3.3)."""

from __future__ import annotations

from contexture_sandbox.http_server import Answer, json_answer

TYPES = "https://uri.etsi.org/ngsi-ld/errors/"


class Problem(Exception):  # noqa: N818 - the broker's own word; it never leaves the HTTP application
    """A request that isn't granted.

    Args:
        status: HTTP status.
        error: the last part of the problem's type (`BadRequestData`, `ResourceNotFound` …).
        title, detail: the broker's words.
    """

    def __init__(self, status: int, error: str, title: str, detail: str = "") -> None:
        super().__init__(title)
        self.status = status
        self.body = {"type": TYPES + error, "title": title, "detail": detail}

    def answer(self) -> Answer:
        """The refusal as the client sees it."""
        return json_answer(self.body, status=self.status, headers={"content-type": "application/problem+json"})


def bad_request(title: str, detail: str = "") -> Problem:
    """400 for whatever can't be understood."""
    return Problem(400, "BadRequestData", title, detail)


def not_found(entity_id: str) -> Problem:
    """404 for an entity."""
    return Problem(404, "ResourceNotFound", "Entity not found", entity_id)
