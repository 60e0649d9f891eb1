"""What the registry holds, now and at any moment before, and the log of its transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock

from contexture.sources.sdmx import Artefact, Format
from contexture_sandbox.context_broker.times import Clock
from contexture_sandbox.registry.model import Action, Structure, Transaction


@dataclass(frozen=True, slots=True)
class Revision:
    """One structure from a transaction on; None where it was deleted."""

    transaction: int
    at_ms: int
    structure: Structure | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What a transaction is to do.

    Attributes:
        action: that was asked for.
        stored: renderings to be stored, by URN.
        deleted: URNs.
        user, submitted, media_type: of the submission.
    """

    action: Action
    stored: Mapping[str, Mapping[Format, Artefact]] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    user: str = "root"
    submitted: bytes = b""
    media_type: str = "application/xml"


class Store:
    """Every revision of every structure.

    Attributes:
        clock: can be frozen and moved by a test.
        lock: held while something is read or written as one.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.lock = RLock()
        self.transactions: list[Transaction] = []
        self._revisions: dict[str, list[Revision]] = {}
        self._there: dict[str, Structure] = {}
        self._deletion_ms = 0

    def current(self) -> dict[str, Structure]:
        """All structures that there are, by URN."""
        with self.lock:
            return dict(self._there)

    def as_of(self, moment_ms: int) -> dict[str, Structure]:
        """All structures that there were at a moment."""
        with self.lock:
            found = {}
            for urn, revisions in self._revisions.items():
                before = [revision for revision in revisions if revision.at_ms <= moment_ms]
                if before and before[-1].structure is not None:
                    found[urn] = before[-1].structure
            return found

    def urns(self) -> list[str]:
        """Of all structures that there are or ever were."""
        with self.lock:
            return sorted(self._revisions)

    def last_modified_ms(self, structures: Iterable[Structure]) -> int:
        """The latest change among them; any deletion makes all structures look changed then (as an FMR does)."""
        return max([self._deletion_ms, *(structure.modified_ms for structure in structures)])

    def commit(self, changes: Changes) -> Transaction:
        """Do all of it, as one transaction."""
        with self.lock:
            there = self.current()
            transaction = Transaction(
                id=len(self.transactions) + 1,
                at_ms=self.now_ms(),
                action=changes.action,
                user=changes.user,
                added=tuple(urn for urn in changes.stored if urn not in there),
                modified=tuple(urn for urn in changes.stored if urn in there),
                deleted=changes.deleted,
                submitted=changes.submitted,
                media_type=changes.media_type,
            )
            self._write(transaction, changes.stored)
            return transaction

    def now_ms(self) -> int:
        """The present in milliseconds since 1970."""
        return self.clock.now() // 1000

    def clear(self) -> None:
        """Forget everything, the log too."""
        with self.lock:
            self.transactions.clear()
            self._revisions.clear()
            self._there.clear()
            self._deletion_ms = 0

    def _write(self, transaction: Transaction, stored: Mapping[str, Mapping[Format, Artefact]]) -> None:
        for urn in transaction.deleted:
            del self._there[urn]
            self._revisions[urn].append(Revision(transaction.id, transaction.at_ms, None))
            self._deletion_ms = transaction.at_ms
        for urn, renderings in stored.items():
            structure = self._there[urn] = Structure(renderings, transaction.at_ms)
            self._revisions.setdefault(urn, []).append(Revision(transaction.id, transaction.at_ms, structure))
        self.transactions.append(transaction)
