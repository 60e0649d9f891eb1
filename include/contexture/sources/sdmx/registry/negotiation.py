"""Requests a format that a registry may not write, and then others that it may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from contexture.sources.sdmx.registry.interface import FormatNotOfferedError, NotExpressible, Query, Registry, Reply

Answer = Reply | NotExpressible | None


def read_one_in(
    registry: Registry, forms: Sequence[str], urn: str, into: Path, as_of: datetime | None = None
) -> Iterator[Answer]:
    """One structure in each of these forms, as long as the caller goes on asking; never empty.

    What the registry says of the first form is its word: that it holds no such thing, when it says so twice in
    succession, or that it can't express it. Of the others only replies are given.

    Args:
        registry: that is asked.
        forms: media types, the one that is wanted first.
        urn: of the structure.
        into: the file.
        as_of: the moment it is wanted of.

    Raises:
        ContextureError: as `Registry.read_one`. That a form is not offered at all is no error where there are others.
    """
    for place, form in enumerate(forms):
        try:
            found = registry.read_one(urn, form, into, as_of=as_of)
            if found is None and place == 0:
                # A registry whose database is away for a moment answers that there is nothing.
                found = registry.read_one(urn, form, into, as_of=as_of)
        except FormatNotOfferedError as error:
            if len(forms) == 1:
                raise
            found = NotExpressible(error.message)
        if place == 0 or isinstance(found, Reply):
            yield found
        if place == 0 and found is None:
            return


def read_first_supported(registry: Registry, forms: Sequence[str], query: Query, into: Path) -> Reply | None:
    """The answer to a question in the first of these forms that it comes in; None where it comes in none.

    Raises:
        ContextureError: as `Registry.read`. That a form is not offered at all is no error where there are others.
    """
    for form in forms:
        try:
            found = registry.read(query, form, into)
        except FormatNotOfferedError:
            if len(forms) == 1:
                raise
            continue
        if isinstance(found, Reply):
            return found
        if not isinstance(found, NotExpressible):
            return None
    return None
