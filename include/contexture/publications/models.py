"""The schemas that a publication names travel in it, so that Spark's tasks need no file of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contexture.publications.findings import Finding
from contexture.publications.model_files import ModelFileError, document_name, documents
from contexture.publications.publication import Publication

_HIDDEN = "model_documents"


def with_models(
    written: object, publication: Publication | None, folder: Path
) -> tuple[Publication | None, list[Finding]]:
    """The publication with the contents of `quality.models`, and what is wrong with them."""
    quality = written.get("quality") if isinstance(written, Mapping) else None
    if isinstance(quality, Mapping) and _HIDDEN in quality:
        return publication, [Finding(("quality", _HIDDEN), f"unknown key `{_HIDDEN}`", "leave it out", at_key=True)]
    if publication is None or not publication.quality.models:
        return publication, []
    try:
        texts = documents(publication.quality.models, folder)
    except ModelFileError as error:
        return publication, [Finding(("quality", "models"), str(error), error.hint)]
    named = {kind: document_name(folder / path, folder) for kind, path in publication.quality.models.items()}
    section = publication.quality.model_copy(update={"models": named, _HIDDEN: texts})
    return publication.model_copy(update={"quality": section}), []
