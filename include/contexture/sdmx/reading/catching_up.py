"""What a gap in a registry's log asks for: a comparison of what the registry holds with what was sent.

Whatever was sent, and neither is meant nor was changed since, was deleted in the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contexture.sdmx.reading.meaning import Meaning, Names
from contexture.sdmx.reading.steps import held_before, touched
from contexture.sdmx.registries import RegistryTransaction


@dataclass(frozen=True, slots=True)
class CatchUp:
    """What happened in a gap, as far as it can still be seen.

    Attributes:
        read: what is meant at the end of the gap and was not changed since, so that its present content is what it was
            then; names and URNs. What changed since comes with the transaction that changed it.
        absent: what was sent and the registry does not list, by names and the URNs that were sent.
        held: names of what the registry held at the end of the gap.
        selected: what was meant then, with the URNs that were sent or will be.
    """

    read: Names
    absent: Names
    held: tuple[str, ...]
    selected: Names


def catch_up(later: Sequence[RegistryTransaction], meaning: Meaning, *, held: Sequence[str], sent: Names) -> CatchUp:
    """What the gap before these transactions asks for.

    Args:
        later: the transactions after the gap.
        meaning: of the publication.
        held: names of what the registry holds now.
        sent: what the target holds.
    """
    then = held_before(later, held, sent)
    known, changed = set(then), touched(later)
    meant = meaning.among(then)
    absent = {name: urn for name, urn in sent.items() if name not in known}
    return CatchUp(
        read={name: meaning.urn(name) for name in meant if name not in changed},
        absent=absent,
        held=then,
        selected={name: sent.get(name) or meaning.urn(name) for name in meant},
    )
