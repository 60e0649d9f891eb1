"""Reading publication files; one bad file never hides another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.publications.findings import Finding
from contexture.publications.loading import place, read
from contexture.publications.problems import Problem, PublicationError
from contexture.publications.publication import Publication

_SUFFIXES = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class LoadedPublication:
    """What a publication file gave: the publication with notes, or the error with every problem."""

    path: Path
    publication: Publication | None
    error: PublicationError | None
    notes: tuple[Problem, ...] = ()


def load_publication_file(path: Path) -> Publication:
    """The publication of one file.

    Raises:
        PublicationError: the file can't be read or used; it carries all problems of the file.
    """
    publication, problems = read(path)
    if publication is None:
        raise PublicationError(path, problems)
    return publication


def load_publications(path: Path) -> list[Publication]:
    """The publications of a folder (and the folders in it) or of one file, ordered by path.

    Raises:
        PublicationError: one or more files can't be used; it carries all problems of them all.
        ConfigurationError: there is no such folder.
    """
    loaded = discover(path)
    problems = [problem for each in loaded if each.error for problem in each.error.problems]
    if problems:
        raise PublicationError(path, problems)
    return [each.publication for each in loaded if each.publication]


def discover(*paths: Path) -> list[LoadedPublication]:
    """Every publication file of folders (or single files) with what it gave, ordered by path within each.

    Raises:
        ConfigurationError: there is no such folder.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    return _without_repeated_names([load_file(file) for file in files])


def _files(path: Path) -> list[Path]:
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            next(path.iterdir(), None)
    except OSError as error:
        # A glob would find nothing in it, as if no publication were there.
        raise ConfigurationError(
            f"{path} can't be read: {error.strerror}", next_step="check the path and its permissions", path=path
        ) from error
    if not path.is_dir():
        raise ConfigurationError(
            f"{path} is neither a file nor a folder",
            next_step="name a folder with publication files, or set CONTEXTURE_PUBLICATIONS as Airflow has it",
            path=path,
        )
    files = (file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    return sorted(file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts))


def load_file(path: Path) -> LoadedPublication:
    """What one file gives."""
    publication, problems = read(path)
    if publication is None:
        return LoadedPublication(path, None, PublicationError(path, problems))
    return LoadedPublication(path, publication, None, problems)


def _without_repeated_names(loaded: list[LoadedPublication]) -> list[LoadedPublication]:
    owners: dict[str, Path] = {}
    # A file called after its publication owns the name, so that a copy under another name never takes it over.
    for each in sorted(loaded, key=lambda item: item.publication is None or item.path.stem != item.publication.name):
        if each.publication is not None:
            owners.setdefault(each.publication.name, each.path)
    return [_refused_if_repeated(each, owners) for each in loaded]


def _refused_if_repeated(each: LoadedPublication, owners: dict[str, Path]) -> LoadedPublication:
    if each.publication is None or owners[each.publication.name] == each.path:
        return each
    name, owner = each.publication.name, owners[each.publication.name]
    message = f"the name {name!r} is taken by {owner}"
    finding = Finding(("name",), message, "give this publication another name, or remove one of the files")
    problem = place(each.path, finding)
    return replace(each, publication=None, error=PublicationError(each.path, [problem]))
