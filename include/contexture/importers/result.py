"""The result of an import: drafts of publications, the outcome of each parameter, connections and decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from contexture.errors import ConfigurationError
from contexture.importers.properties_file import JavaProperty
from contexture.kafka.settings import is_secret
from contexture.publications import Problem, discover
from contexture.publications.problems import looks_secret, without_secrets

Outcome = Literal["kept", "replaced", "needs a decision", "no longer needed", "left out", "unknown", "wrong"]

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Draft:
    """A publication to be written, and the files it names.

    Attributes:
        name: of the publication.
        text: its YAML, with comments.
        origin: the sink, as `agent.sinks.name`.
        files: the names of grouping rules and name mappings that it has beside it.
    """

    name: str
    text: str
    origin: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterResult:
    """The outcome of one line of the file.

    Attributes:
        key: as the file has it.
        value: as the file has it, except a secret.
        line: its number.
        outcome: whether it was kept.
        why: its new name, what replaces it, or why it is not needed.
    """

    key: str
    value: str
    line: int
    outcome: Outcome
    why: str

    def without_value(self) -> ParameterResult:
        """Returns the outcome with its value hidden."""
        return replace(self, value=_HIDDEN)


def explain(origin: JavaProperty, outcome: Outcome, why: str) -> ParameterResult:
    """Returns the outcome of a property; the value of a secret is hidden, because files hold passwords."""
    hidden = looks_secret(origin.key.rpartition(".")[2]) or is_secret(origin.key)
    value = _HIDDEN if hidden else without_secrets(origin.value)
    return ParameterResult(origin.key, value, origin.line, outcome, why)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The publications of an agent.

    Attributes:
        drafts: the publications, by sink and service.
        explained: the outcome of each line of the file.
        connections: the commands that make the connections the publications name.
        decisions: what the file does not contain, and a person must decide.
    """

    drafts: tuple[Draft, ...]
    explained: tuple[ParameterResult, ...]
    connections: tuple[str, ...]
    decisions: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every value of the file could be kept."""
        return not any(each.outcome == "wrong" for each in self.explained)


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


def check_import(result: ImportResult, beside: dict[str, bytes]) -> Imported:
    """Returns the result with what `contexture check` finds in its publications."""
    with TemporaryDirectory() as folder:
        _write_files(result, beside, Path(folder))
        loaded = discover(Path(folder))
    problems = tuple(problem for each in loaded for problem in (each.error.problems if each.error else each.notes))
    return Imported(result, beside, problems)


def write_import(imported: Imported, folder: Path, *, force: bool) -> None:
    """Writes the publications and the files they name.

    Raises:
        ConfigurationError: a file is there already, or the folder cannot be written.
    """
    there = [name for name in _names(imported) if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} has {', '.join(there)} already", next_step="choose another folder, or replace them with --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_files(imported.result, imported.beside, folder)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written: {error.strerror}", next_step="check the path and permissions"
        ) from None


def _names(imported: Imported) -> list[str]:
    return [*(file_name(draft.name) for draft in imported.result.drafts), *imported.beside]


def file_name(publication: str) -> str:
    """Returns the file of a publication."""
    return f"{publication}.yaml"


def _write_files(result: ImportResult, beside: dict[str, bytes], folder: Path) -> None:
    for draft in result.drafts:
        (folder / file_name(draft.name)).write_text(draft.text, encoding="utf-8")
    for name, content in beside.items():
        (folder / name).write_bytes(content)
