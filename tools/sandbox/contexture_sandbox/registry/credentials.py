"""Who asks, by basic authentication."""

from __future__ import annotations

import binascii
from base64 import b64decode

from contexture_sandbox.registry.refusals import UNAUTHORISED, Refusal
from contexture_sandbox.registry.registry import Call, Registry


def user_of(registry: Registry, call: Call) -> str | None:
    """The user; None for the public.

    Raises:
        Refusal: 401, the credentials are wrong or of another kind.
    """
    given = call.headers.get("authorization")
    if given is None:
        return None
    scheme, _, encoded = given.partition(" ")
    try:
        user, _, password = b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise unauthorised() from None
    if scheme.lower() != "basic" or registry.credentials.get(user) != password:
        raise unauthorised()
    return user


def unauthorised() -> Refusal:
    """401: only for those with credentials."""
    return Refusal(401, UNAUTHORISED, "Unauthorized")
