"""Forms that change something: from our own pages, shown to this user before, with a reason."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from airflow.sdk import conf
from fastapi import HTTPException, Request

from contexture_airflow.web.asgi import AIRFLOW

TOKEN_FIELD: Final = "token"  # noqa: S105 - the name of a field
FORM_FIELD: Final = "form"
_HOUR_SECONDS: Final = 3600
_LARGEST_BYTES: Final = 64 * 1024
_LONGEST_REASON: Final = 500


class ForbiddenError(HTTPException):
    """Anyone who asks is logged in, and may not do this."""

    def __init__(self, detail: str) -> None:
        super().__init__(403, detail)


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """What a person has written."""

    fields: Mapping[str, Sequence[str]]

    def one(self, name: str) -> str:
        """The value of a field; empty when there is none."""
        return next(iter(self.fields.get(name, ())), "")

    def many(self, name: str) -> tuple[str, ...]:
        """The values of a field that may come several times."""
        return tuple(self.fields.get(name, ()))

    @property
    def reason(self) -> str:
        """Why, in one line; no longer than what is read in a table."""
        # Terminals would obey control characters, and PostgreSQL takes none that is zero.
        said = "".join(each if each.isprintable() else " " for each in self.one("reason"))
        return said.strip()[:_LONGEST_REASON]


def new_form() -> str:
    """What makes a form unique: when it was shown, and some letters."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}_{uuid4().hex[:8]}"


EMPTY: Final = SubmittedForm({})
"""Nothing was written yet."""


async def read_form(request: Request) -> SubmittedForm:
    """The fields of a form that one of our own pages has sent.

    Raises:
        ForbiddenError: another page has sent it.
        HTTPException: 413 when it is too long, 422 when it is no form.
    """
    _check_origin(request)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_BYTES:
            raise HTTPException(413, "the form is too long")
    try:
        return SubmittedForm(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise HTTPException(422, "this is not a form") from None


def token_for(request: Request, user: str, what: str) -> str:
    """What a form for this user and this action carries, so that no one else can have written it. Valid for an hour."""
    return _token(request, user, what, int(time.time() // _HOUR_SECONDS))


def is_token(request: Request, user: str, what: str, given: str) -> bool:
    """Whether a form was shown to this user for this action, no more than an hour or two ago."""
    hour = int(time.time() // _HOUR_SECONDS)
    # As bytes: of texts only ASCII can be compared, and what is given may be anything.
    expected = (_token(request, user, what, each).encode() for each in (hour, hour - 1))
    return any(hmac.compare_digest(each, given.encode()) for each in expected)


def _token(request: Request, user: str, what: str, hour: int) -> str:
    # Airflow's own secret for such purposes, the same in all API servers of an installation.
    secret = str(request.scope[AIRFLOW].state.secret_key)
    return hmac.new(secret.encode(), repr(("contexture page", user, what, hour)).encode(), sha256).hexdigest()


def _check_origin(request: Request) -> None:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site == "same-origin" or (site is None and origin is not None and _netloc(origin) in _own(request)):
        return
    raise ForbiddenError("this request did not come from a page of Contexture, and was not executed")


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # such as `http://[`, which no browser sends
        return ""


def _own(request: Request) -> set[str]:
    return {request.headers.get("host", ""), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {""}
