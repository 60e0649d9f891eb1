"""The most memory that processes of a kind had at once, seen while something runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tools.bench.engines.accounting import PROC, command_line
from tools.bench.repeated_look import RepeatedLook
from tools.cluster.moments import descendants

KindOf = Callable[[str], str | None]
"""The kind of a process by its command line; None where it isn't counted."""

_SECONDS = 1.0


class MemoryWatch(RepeatedLook):
    """Looks once a second while the block runs. What several processes share is counted in parts (PSS).

    Args:
        roots: servers whose processes are looked at, again and again, for new ones come.
        kind_of: says what kind a process is.

    Attributes:
        most: MiB of all of a kind together, at most.
        largest: MiB of the largest one of a kind.
        number: of a kind at once, at most.
    """

    def __init__(self, roots: Iterable[int], kind_of: KindOf) -> None:
        super().__init__(_SECONDS)
        self.most: dict[str, float] = {}
        self.largest: dict[str, float] = {}
        self.number: dict[str, int] = {}
        self._roots = tuple(roots)
        self._kind_of = kind_of

    def note(self, sizes: Mapping[str, list[float]]) -> None:
        """Takes what was seen at one moment: MiB of each process, by kind."""
        for kind, each in sizes.items():
            self.most[kind] = max(self.most.get(kind, 0.0), sum(each))
            self.largest[kind] = max(self.largest.get(kind, 0.0), *each)
            self.number[kind] = max(self.number.get(kind, 0), len(each))

    def look(self) -> None:
        """See `RepeatedLook`."""
        seen: dict[str, list[float]] = {}
        for process in {each for root in self._roots for each in descendants(root)}:
            kind = self._kind_of(command_line(process))
            if kind is not None:
                seen.setdefault(kind, []).append(proportional_mib(process))
        self.note(seen)


def proportional_mib(process: int) -> float:
    """The memory of one process, what it shares counted in parts; 0 when it has gone."""
    try:
        lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
