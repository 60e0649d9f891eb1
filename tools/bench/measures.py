"""What a bench returns: figures of ours and of a peer, taken in turn, and the target their ratio is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

Measurement = Callable[[], float]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """What a ratio should be.

    Attributes:
        limit: the ratio.
        at_least: the ratio should be this or more; this or less when False.
    """

    limit: float
    at_least: bool

    def met(self, ratio: float) -> bool:
        """Whether a ratio reaches it."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {shown(self.limit)}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes:
        bench: the bench it belongs to, as `--only` names it.
        what: what was measured.
        unit: of the figures.
        ours: our figures, one for each pair.
        peer: the peer's figures of the same pairs; empty when there is no peer.
        against: what the peer is.
        target: of the ratio ours to peer, or of our median when there is no peer; None: for information.
    """

    bench: str
    what: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...] = field(default=())
    against: str = ""
    target: Target | None = None

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours to peer, pair by pair."""
        return tuple(one / other for one, other in zip(self.ours, self.peer, strict=True)) if self.peer else ()

    @property
    def ratio(self) -> float | None:
        """The median of the ratios."""
        return median(self.ratios) if self.peer else None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        if self.target is None:
            return None
        return self.target.met(self.ratio if self.ratio is not None else median(self.ours))

    def as_dict(self) -> dict[str, object]:
        """All of it for JSON."""
        return {
            "bench": self.bench,
            "what": self.what,
            "unit": self.unit,
            "ours": self.ours,
            "peer": self.peer,
            "against": self.against,
            "ratios": self.ratios,
            "ratio": self.ratio,
            "target": str(self.target) if self.target else None,
            "met": self.met,
        }


def alternate(
    ours: Measurement, peer: Measurement, pairs: int, progress: Progress
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measures both in turn, beginning with the other one in every second pair; gives our figures and the peer's.

    A machine that others use is never the same for long: what is measured within seconds of each other can be compared.
    """
    figures: dict[Measurement, list[float]] = {ours: [], peer: []}
    for pair in range(pairs):
        for measurement in (ours, peer) if pair % 2 == 0 else (peer, ours):
            figures[measurement].append(measurement())
        progress(f"pair {pair + 1} of {pairs}: ours {shown(figures[ours][-1])}, peer {shown(figures[peer][-1])}")
    return tuple(figures[ours]), tuple(figures[peer])


def shown(figure: float) -> str:
    """A figure with three digits that count, or without decimals."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
