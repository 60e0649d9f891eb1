"""The filters of transactions and of the quarantine in an address, as forms and scripts write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Query
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from contexture.monitoring import TransactionStatus
from contexture.monitoring.history import LAST_NUMBER, LAST_SHARD, TransactionFilter
from contexture.operations.status.quarantine import QuarantineSearch

_LONGEST_ID: Final = 200


def _filled(given: Any) -> Any:
    """A field that is left empty asks for nothing."""
    text = given.strip() if isinstance(given, str) else given
    return None if text == "" else text


def _readable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("outbox", "an id has no such characters")
    return text


def _moment(given: Any) -> datetime:
    try:
        at = datetime.fromisoformat(given)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        message = "write a time as 2026-03-01T11:00; it is UTC unless it has another offset"
        raise PydanticCustomError("moment", message) from None


_Filled: Final = BeforeValidator(_filled)
_Status = Annotated[TransactionStatus | None, _Filled, Query()]
_Outbox = Annotated[Annotated[str, Field(max_length=_LONGEST_ID), BeforeValidator(_readable)] | None, _Filled, Query()]
_Shard = Annotated[Annotated[int, Field(ge=0, le=LAST_SHARD)] | None, _Filled, Query()]
_Transaction = Annotated[Annotated[int, Field(ge=0, le=LAST_NUMBER)] | None, _Filled, Query()]
Moment = Annotated[Annotated[datetime, BeforeValidator(_moment)] | None, _Filled, Query()]


def parse_filter(
    status: _Status = None,
    outbox: _Outbox = None,
    shard: _Shard = None,
    since: Moment = None,
    until: Moment = None,
    source_transaction: _Transaction = None,
) -> TransactionFilter:
    """Those that an address asks for.

    Raises:
        HTTPException: 422 when no time is between those that were given.
    """
    if since is not None and until is not None and since >= until:
        raise HTTPException(422, "since: this is not before until")
    return TransactionFilter(status, outbox, shard, since, until, source_transaction)


RequestedFilter = Annotated[TransactionFilter, Depends(parse_filter)]
"""A route that takes this has the filters of transactions."""


_Text = Annotated[str, Query(max_length=_LONGEST_ID)]


def parse_quarantine_filter(rule: _Text = "", text: _Text = "") -> QuarantineSearch:
    """The quarantined rows that an address asks for."""
    return QuarantineSearch(rule.strip(), text.strip())


RequestedQuarantine = Annotated[QuarantineSearch, Depends(parse_quarantine_filter)]
"""A route that takes this has the filters of the quarantine."""


def address(which: TransactionFilter) -> dict[str, Any]:
    """The fields by which an address asks for these."""
    fields = {
        "status": None if which.status is None else which.status.value,
        "outbox": which.outbox,
        "shard": which.shard,
        "since": _field(which.since),
        "until": _field(which.until),
        "source_transaction": which.source_transaction,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _field(at: datetime | None) -> str | None:
    if at is None:
        return None
    # As fields of browsers have it: no offset, and three digits of a second at most.
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds" if at.microsecond else "seconds")
