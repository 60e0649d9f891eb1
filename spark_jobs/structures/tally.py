"""What the tasks of a pull have told so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from contexture.sources.sdmx.registry import same_artefact
from spark_jobs.structures.questions import Told


@dataclass(slots=True)
class Tally:
    """What was told, by the names that structures go by in all formats.

    Attributes:
        landed: URNs, as the bodies have them.
        answered: numbers of the questions that something was landed from.
        others: URNs of structures that replies held beside what was wanted.
        there: URNs that the registry holds, of those that it was only asked about.
        gone: URNs that it says it doesn't hold, by the number of the question.
        inexpressible: URNs that it holds and can't express, by the number of the question.
        files: SHA-256 by name.
        rows: in all files.
    """

    landed: dict[str, str] = field(default_factory=dict)
    answered: set[int] = field(default_factory=set)
    others: dict[str, str] = field(default_factory=dict)
    there: dict[str, str] = field(default_factory=dict)
    gone: dict[int, str] = field(default_factory=dict)
    inexpressible: dict[int, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, told: Iterable[Told]) -> None:
        """Takes note of what tasks tell."""
        for each in told:
            self._add(each)

    def _add(self, told: Told) -> None:
        match told.what:
            case "landed":
                self.landed[same_artefact(told.urn)] = told.urn
                self.answered.add(told.number)
            case "other":
                self.others[same_artefact(told.urn)] = told.urn
            case "there":
                self.there[same_artefact(told.urn)] = told.urn
            case "gone":
                self.gone[told.number] = told.urn
            case "inexpressible":
                self.inexpressible[told.number] = told.urn
            case "file":
                self.note_file(told.urn, told.detail or "", told.number)

    def note_file(self, name: str, sha256: str, rows: int) -> None:
        """A file is complete."""
        self.files[name] = sha256
        self.rows += rows
