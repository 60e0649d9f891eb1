"""The report of a verification: a page that needs no network, and the same as JSON, below the publication's folder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from contexture.operations.verification.findings import KINDS, WHAT_TO_DO, Verification
from contexture.storage.home import Storage
from contexture.storage.publication_store import PublicationFolder

KEPT: Final = 30
"""How many reports of a publication are kept."""

_MEANINGS: Final = {
    "missing": "should be there and is not",
    "extra": "is there and should not",
    "different": "the last value is another one",
    "order": "values stand in another order, or in several partitions",
}
_COMPARED: Final = {
    "bytes": "byte for byte with the archived outbox that sent them",
    "content": "by the hash of their content, as state has it",
    "source": "with the body, headers and time of what the source holds",
    "presence": "by presence alone: their outbox is no longer kept, or several identities share the key",
}


def write(storage: Storage, found: Verification) -> str:
    """Writes both forms, and removes the oldest reports beyond `KEPT`; returns the path of the page."""
    folder = PublicationFolder(found.publication)
    own = folder.verification(f"{found.verified_at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z")
    storage.write(f"{own}/verification.json", found.to_json())
    storage.write(f"{own}/index.html", page(found))
    for old in storage.folders(folder.verifications())[:-KEPT]:
        storage.remove(folder.verification(old))
    return f"{own}/index.html"


def last(storage: Storage, publication: str) -> Verification | None:
    """The last verification that was reported; None when there is none that can be read."""
    folder = PublicationFolder(publication)
    for name in reversed(storage.folders(folder.verifications())):
        try:
            return Verification.model_validate_json(storage.read(f"{folder.verification(name)}/verification.json"))
        except (FileNotFoundError, ValidationError):
            continue
    return None


def page(found: Verification) -> bytes:
    """The page as UTF-8 HTML; every text in it is escaped, for identities come from anybody."""
    environment = Environment(
        loader=PackageLoader("contexture.operations.verification"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "moment": _moment}
    template = environment.get_template("verification.html.j2")
    words = {"kinds": KINDS, "meanings": _MEANINGS, "compared": _COMPARED, "what_to_do": WHAT_TO_DO}
    return template.render(found=found, **words).encode()


def _number(value: int) -> str:
    return f"{value:,}"


def _moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
