"""What the status of an answer means."""

from __future__ import annotations

import re

import httpx

from contexture.errors import ConfigurationError, ContextureError
from contexture.ngsi.answers import RETRIED_STATUSES, TokenRefusedError, retry_after_seconds
from contexture.ngsi.http_connection import HttpConnection
from contexture.sdmx.registries.errors import RegistryUnavailableError, ReplyTooLargeError

OK, NO_CONTENT, NOT_MODIFIED, BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED = 200, 204, 304, 400, 404, 501
FORMAT_REFUSED = frozenset({406, 415})
ANSWERS = frozenset({OK, NO_CONTENT, NOT_MODIFIED, BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED, *FORMAT_REFUSED})
"""Statuses that say something about what was asked for; every other one is about us or the registry's health."""

_ERROR_ELEMENT = re.compile(rb"<(?:\w{1,40}:)?Error[\s>]")
_SCHEMAS = b"www.sdmx.org/resources/sdmxml/schemas"
_ERROR_DOCUMENT = re.compile(rb'"errors"\s*:\s*\[')


def is_error_message(media_type: str, words: bytes) -> bool:
    """Whether a refusal is an error message of SDMX, in XML or JSON: no proxy and no empty server answers so."""
    if "sdmx" in media_type.lower() and "error" in media_type.lower():
        return True
    element = _ERROR_ELEMENT.search(words)
    if element is not None and words.find(_SCHEMAS, element.end()) >= 0:
        return True
    return "json" in media_type.lower() and _ERROR_DOCUMENT.search(words) is not None


def refusal(connection: HttpConnection, response: httpx.Response) -> ContextureError:
    """The error that a status stands for which is no answer."""
    status, where = response.status_code, f"{connection.WHO} at {connection.address}"
    if status in {401, 403}:
        kind = TokenRefusedError if status == httpx.codes.UNAUTHORIZED else ConfigurationError
        return kind(
            f"{where} refuses our credentials ({status})",
            next_step="put valid credentials into its connection and give them the right to read, or take them out to "
            "read what is public",
        )
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return ReplyTooLargeError(
            f"{where} finds its answer too large (413)", next_step="raise the registry's limit, or select less"
        )
    if 300 <= status < 400:
        return ConfigurationError(
            f"{where} answers from another address ({status})",
            next_step="put the address that it redirects to into its connection",
        )
    if status in RETRIED_STATUSES or status > 500:
        return RegistryUnavailableError(
            f"{where} answered {status}",
            next_step="look into the registry's log and at its database; the run is retried",
            retry_after_seconds=retry_after_seconds(response.headers.get("retry-after", "")),
        )
    return ConfigurationError(
        f"what is at {connection.address} does not answer as a structure registry ({status})",
        next_step="correct the address in its connection: what stands before /structure or /sdmx/v2, and its api",
    )
