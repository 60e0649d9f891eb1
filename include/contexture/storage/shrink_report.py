"""What a run would have deleted, had the guard against shrinking let it: for who decides whether it may."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from contexture.storage.documents import StoredDocument
from contexture.storage.home import Storage
from contexture.storage.publication_store import PublicationFolder

SHOWN = 200
"""How many identities are named; all of them are counted."""


class ShrinkReport(StoredDocument):
    """What would have gone.

    Attributes:
        count: how many identities.
        held: how many the target holds.
        limit: how many may go in one run.
        identities: the first of them, as keys of records have them.
    """

    count: int
    held: int
    limit: int
    identities: tuple[str, ...]


def write_shrink_report(
    storage: Storage,
    publication: str,
    run: str,
    *,
    count: int,
    held: int,
    limit: int,
    identities: Sequence[bytes | str],
) -> None:
    """Keeps what a run would have deleted beside its orders.

    Raises:
        RetriableError: the storage did not answer.
    """
    texts = (each if isinstance(each, str) else each.decode(errors="replace") for each in identities[:SHOWN])
    kept = ShrinkReport(count=count, held=held, limit=limit, identities=tuple(texts))
    storage.write(PublicationFolder(publication).vanishing(run), kept.to_json())


def read_shrink_report(storage: Storage, publication: str, run: str) -> ShrinkReport | None:
    """What a run would have deleted; None where the guard stopped nothing, or its file is gone."""
    try:
        return ShrinkReport.model_validate_json(storage.read(PublicationFolder(publication).vanishing(run)))
    except (FileNotFoundError, ValidationError):
        return None
