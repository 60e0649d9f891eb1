"""Topics chosen by patterns: those that match, but for those that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from contexture.errors import ConfigurationError
from contexture.kafka.ledger_prefix import LEDGER_PREFIX

# Kafka's own topics, and ours that tell how far senders are: no pattern means them.
_INTERNAL: Final = ("__", LEDGER_PREFIX)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    r"""Patterns of whole names, in Python's syntax (Kafka's clients each have one of their own).

        TopicFilter(r"ngsi\..*", exclude=r".*\.test")

    Attributes:
        include: what a name has to match.
        exclude: names that match it are left out.

    Raises:
        ConfigurationError: a pattern that can not be read.
    """

    include: str
    exclude: str = ""

    def __post_init__(self) -> None:
        for pattern in (self.include, self.exclude):
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ConfigurationError(
                    f"{pattern!r} is no pattern of topics: {problem}", next_step="correct it, in Python's syntax"
                ) from None

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The names that are meant, sorted; never topics of Kafka or of ledgers."""
        return sorted(name for name in names if self._means(name))

    def _means(self, name: str) -> bool:
        if name.startswith(_INTERNAL) or not re.fullmatch(self.include, name):
            return False
        return not (self.exclude and re.fullmatch(self.exclude, name))
