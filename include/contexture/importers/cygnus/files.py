"""Reading the files of an import, checking the publications they become, and writing these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from contexture.errors import ConfigurationError
from contexture.importers.cygnus.publications import ImportResult, RuleFiles, import_agent
from contexture.publications import Problem, discover

_OF_PUBLICATIONS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        result: the publications and the explanations.
        beside: the files that the publications name, by the names they have there.
        problems: those that `contexture check` finds in the publications, notes included.
    """

    result: ImportResult
    beside: dict[str, bytes]
    problems: tuple[Problem, ...]

    @property
    def is_right(self) -> bool:
        """Whether every value was kept and every publication passes."""
        return self.result.is_clean and not any(problem.severity == "error" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What the agent's own file does not contain: its grouping rules, its name mappings, the services, its release."""

    grouping: Path | None = None
    mappings: Path | None = None
    services: tuple[str, ...] = ()
    release: str | None = None


def from_cygnus(agent: Path, request: ImportRequest) -> Imported:
    """Returns the publications of a Cygnus agent, checked.

    Raises:
        ConfigurationError: a file can't be read, or is no agent's with a Kafka sink.
    """
    given = _given(request.grouping, request.mappings)
    names = (path.name if path else None for path in (request.grouping, request.mappings))
    text = _text(_read(agent))
    result = import_agent(text, files=RuleFiles(*names), services=request.services, release=request.release)
    used = {name for draft in result.drafts for name in draft.files}
    beside = {name: content for name, content in given.items() if name in used}
    with TemporaryDirectory() as folder:
        _write(result, beside, Path(folder))
        loaded = discover(Path(folder))
    problems = tuple(problem for each in loaded for problem in (each.error.problems if each.error else each.notes))
    return Imported(result, beside, problems)


def _given(*paths: Path | None) -> dict[str, bytes]:
    """Returns the contents of the files by the names that they get beside the publications."""
    contents: dict[str, bytes] = {}
    for path in paths:
        if path is None:
            continue
        if path.name in contents:
            raise ConfigurationError(
                f"--grouping and --mappings both name a file {path.name}",
                next_step="rename one of them: they are written to one folder",
            )
        if path.suffix in _OF_PUBLICATIONS:
            raise ConfigurationError(
                f"{path.name} would be taken for a publication", next_step="rename it, such as to .json"
            )
        contents[path.name] = _read(path)
    return contents


def write(imported: Imported, folder: Path, *, force: bool) -> None:
    """Writes the publications and the files they name.

    Raises:
        ConfigurationError: a file is there already, or the folder can't be written.
    """
    there = [name for name in _names(imported) if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} has {', '.join(there)} already", next_step="choose another folder, or replace them with --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(imported.result, imported.beside, folder)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} can't be written: {error.strerror}", next_step="check the path and permissions"
        ) from None


def _names(imported: Imported) -> list[str]:
    return [*(file_name(draft.name) for draft in imported.result.drafts), *imported.beside]


def file_name(publication: str) -> str:
    """Returns the file of a publication."""
    return f"{publication}.yaml"


def _write(result: ImportResult, beside: dict[str, bytes], folder: Path) -> None:
    for draft in result.drafts:
        (folder / file_name(draft.name)).write_text(draft.text, encoding="utf-8")
    for name, content in beside.items():
        (folder / name).write_bytes(content)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}", next_step="check the path") from None


def _text(content: bytes) -> str:
    # Flume reads its file in the platform's encoding; Java's own for properties is Latin-1, which fits every byte.
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
