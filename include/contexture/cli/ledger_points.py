"""What `contexture doctor` looks at in Kafka besides the connection: the replicas of the ledgers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from contexture.cli import connections
from contexture.cli.examination import Found, Point
from contexture.errors import ContextureError
from contexture.publications import Publication

if TYPE_CHECKING:
    from contexture.sending.ledger_copies import LedgerCopies

CopiesOf = Callable[[Publication], "LedgerCopies | None"]


def ledger_points(
    publications: Iterable[Publication], *, timeout_seconds: float, copies_of: CopiesOf | None = None
) -> Iterator[Point]:
    """One point for each Kafka connection that is set here.

    Args:
        publications: whose ledgers.
        timeout_seconds: how long brokers are waited for.
        copies_of: asks the brokers about a publication's ledger; for tests.
    """
    users: dict[str, list[Publication]] = {}
    for each in publications:
        users.setdefault(each.publish.connection, []).append(each)
    asked = copies_of or (lambda publication: _copies_of(publication, timeout_seconds))
    for connection, published in sorted(users.items()):
        if connections.read(connection) is not None:
            yield Point(f"ledgers over {connection}", _looked_at(published, asked))


def _looked_at(publications: list[Publication], copies_of: CopiesOf) -> Callable[[], Found]:
    def look() -> Found:
        try:
            found = [copies for each in publications if (copies := copies_of(each)) is not None]
        except ContextureError as error:
            # The connection's own point says what is wrong with it.
            return Found("not looked at", error.message)
        weak = [copies for copies in found if copies.weakness]
        if weak:
            return Found("doubtful", "; ".join(each.weakness for each in weak), "; ".join(each.remedy for each in weak))
        return Found("good", f"{len(found)} ledgers have as many replicas as they need or the cluster can give")

    return look


def _copies_of(publication: Publication, timeout_seconds: float) -> LedgerCopies | None:
    from contexture.cli.kafka_connections import settings_of
    from contexture.kafka.broker_wait import Patience
    from contexture.sending import Ledger, SenderNames

    names = SenderNames(publication.name, publication.publish.transactional_id_prefix)
    return Ledger(settings_of(publication.publish.connection), names, patience=Patience(timeout_seconds)).copies()
