"""The publication files of this installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from contexture.errors import ConfigurationError, ContextureError
from contexture.publications import Publication, PublicationError, discover, fingerprint, load_publication_file
from contexture_airflow.settings import publication_dag_id, publications_folder


def publications(dag_id: str | None = None) -> Iterator[Publication]:
    """The good publications, ordered by path; only the one of `dag_id` when a task of it is about to run.

    Raises:
        ConfigurationError: there is no such folder.
    """
    folder = publications_folder()
    own = None if dag_id is None else _of_its_own_file(folder, dag_id)
    if own is not None:
        yield own
        return
    for loaded in discover(folder):
        if loaded.publication is not None and dag_id in {None, publication_dag_id(loaded.publication.name)}:
            yield loaded.publication


def errors() -> list[PublicationError]:
    """What is wrong with the other files, ordered by path."""
    return [loaded.error for loaded in discover(publications_folder()) if loaded.error is not None]


def fingerprints() -> dict[str, str]:
    """The fingerprint of each good publication by its name; none while the folder is away."""
    try:
        return {publication.name: fingerprint(publication) for publication in publications()}
    except ConfigurationError:
        return {}


def stamps() -> dict[str, tuple[int, int]]:
    """Time of change and size of everything in the folder, by path."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(publications_folder().rglob("*")):
        # An editor may replace a file between the listing and the look at it.
        with suppress(FileNotFoundError):
            stat = path.stat()
            found[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _of_its_own_file(folder: Path, dag_id: str) -> Publication | None:
    # A file called after its publication owns the name, so the others need not be read.
    for suffix in (".yaml", ".yml"):
        path = folder / f"{dag_id.removeprefix(publication_dag_id(''))}{suffix}"
        if path.is_file():
            try:
                publication = load_publication_file(path)
            except ContextureError:
                return None
            return publication if publication_dag_id(publication.name) == dag_id else None
    return None
