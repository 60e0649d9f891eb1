"""Seeing that all is there that tasks wrote for each other.

They find each other's files by listing a folder. A network share may show a machine the folder as it was half a minute
ago, and some object stores list late: what is not seen would be taken for gone from the source, or not be sent.
"""

from __future__ import annotations

from contexture.errors import RetriableError


def check_seen(found: int, expected: int, what: str) -> None:
    """Sees that as much is found as there is.

    Args:
        found: how many are seen.
        expected: how many there are, as those tell who wrote them.
        what: their name, for people.

    Raises:
        RetriableError: it is not; preparing again begins with nothing.
    """
    if found != expected:
        raise RetriableError(
            f"{found} of {expected} {what} are seen: the storage does not list at once what other processes wrote",
            next_step="retry the task; if it comes back, let CONTEXTURE_HOME be on a storage that lists what was "
            "written (a network share: mounted so that folders are not cached)",
        )
