"""Names of properties that the client doesn't know, and what may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from contexture.kafka import profiles
from contexture.kafka.catalogue import catalogue
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.stores import STORE_NAMES
from contexture.kafka.translation import TRANSLATED

# The client tells the first one that it meets.
_TOLD: Final = re.compile(r'No such configuration property: "([^"]*)"')


def unknown(names: Iterable[str]) -> list[str]:
    """Those that mean nothing to the client, nor to what translates them."""
    known = _known()
    return sorted(name for name in names if name not in known)


def refusal(names: Iterable[str]) -> KafkaConfigurationError:
    """The error for names that mean nothing."""
    found = sorted(names)
    meant = {name: nearest for name in found if (nearest := _nearest(name))}
    one = "it" if len(found) == 1 else "them"
    advice = [f"write {nearest} for {'it' if len(found) == 1 else name}" for name, nearest in meant.items()]
    advice += [f"take {one} out of the extra of the Kafka connection"] if len(meant) < len(found) else []
    return KafkaConfigurationError(
        f"the Kafka client has no such properties: {', '.join(found)}",
        next_step=f"{', or '.join(advice)}; `contexture connection properties` lists those that there are",
    )


def refusal_of(told: str) -> KafkaConfigurationError | None:
    """The error for the name that the client said it doesn't know; None where it said something else."""
    found = _TOLD.search(told)
    return refusal([found[1]]) if found is not None else None


def _known() -> frozenset[str]:
    return frozenset(catalogue()) | TRANSLATED | STORE_NAMES | {profiles.PROFILE}


def _nearest(name: str) -> str:
    return next(iter(get_close_matches(name, sorted(_known()), n=1, cutoff=0.8)), "")
