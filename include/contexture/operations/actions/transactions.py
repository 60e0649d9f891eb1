"""Transactions of the operational tables, filtered."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables, TransactionRow
from contexture.monitoring.database import DATABASE_VARIABLE
from contexture.monitoring.history import TransactionFilter
from contexture.operations import environment
from contexture.operations.environment import known_publications
from contexture.storage.file_tree import HOME_VARIABLE
from contexture.storage.home import Home


@dataclass(frozen=True, slots=True)
class KeptTransactions:
    """Some of them, the latest first.

    Attributes:
        address: of the operational tables, without a password.
        publication: whose they are; None: of all.
        rows: the transactions.
        has_more: whether there are earlier ones that were asked for as well.
    """

    address: str
    publication: str | None
    rows: tuple[TransactionRow, ...]
    has_more: bool


def kept_transactions(publication: str | None, which: TransactionFilter, *, last: int) -> KeptTransactions:
    """The last transactions that are asked for.

    Raises:
        ConfigurationError: there is no such publication, or there are no tables.
        RetriableError: their database, or the storage, did not answer.
    """
    storage = environment.open_home()
    store = _store(storage)
    rows = store.transactions(publication, which=which, limit=last + 1) if store.is_there else []
    if not rows and publication is not None:
        _check_known(storage, publication)
    return KeptTransactions(store.address, publication, tuple(rows[:last]), len(rows) > last)


def _store(storage: Home) -> RunTables:
    found = RunTables.of_home(storage.root)
    if found is None:
        raise ConfigurationError(
            f"there are no operational tables: {storage.root} is an object store, and {DATABASE_VARIABLE} is not set",
            next_step=f"set {DATABASE_VARIABLE} as Airflow has it",
        )
    return found


def _check_known(storage: Home, publication: str) -> None:
    known = sorted({each.name for each in known_publications()} | set(environment.publications(storage)))
    if publication not in known:
        raise ConfigurationError(
            f"there is no publication {publication} in {storage.root}",
            next_step=f"choose among: {', '.join(known)}" if known else f"set {HOME_VARIABLE} as Airflow has it",
        )
