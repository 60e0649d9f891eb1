"""Which publications' rows are told again, and by which connection their ledgers are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from contexture.cli import home
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.kafka_connections import settings_of
from contexture.errors import ConfigurationError
from contexture.monitoring import ProducerStore
from contexture.operations.rebuilding import Rebuilt, rebuild
from contexture.publications import Publication, discover
from contexture.sending.ledger import ledger_history


def rebuilt(names: Sequence[str]) -> Iterator[Rebuilt]:
    """Rebuilds the rows of each of the publications; of all that have a good file when none is named.

    Raises:
        ConfigurationError: there is no such publication, connection or database.
        RetriableError: brokers, database or storage did not answer.
    """
    storage = home.open_home()
    store = ProducerStore.of_home(storage.root)
    if store is None:
        raise ConfigurationError(
            "there are no operational tables", next_step="set CONTEXTURE_DATABASE to the URL of a database"
        )
    for publication in _chosen(names):
        history = ledger_history(settings_of(publication.publish.connection), publication.name)
        yield rebuild(store, storage, publication.name, history)
    store.close()


def _chosen(names: Sequence[str]) -> list[Publication]:
    folder = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    known = {each.publication.name: each.publication for each in discover(folder) if each.publication is not None}
    if missing := [name for name in names if name not in known]:
        raise ConfigurationError(
            f"there is no good publication file for {', '.join(missing)}",
            next_step=f"name some of {', '.join(sorted(known))}" if known else f"see the files in {folder}",
        )
    return [known[name] for name in names or sorted(known)]
