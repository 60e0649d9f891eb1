"""A registry in memory: code lists and registrations of SDMX-ML 2.1, their log, and wrong responses on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from builders import registrations
from builders.registry import codelist, codelists
from contexture.errors import RetriableError
from contexture.sources.http.errors import ReplyTooLargeError
from contexture.sources.sdmx import Format, Urn
from contexture.sources.sdmx.registry import (
    FormatNotOfferedError,
    Log,
    LogPeriod,
    LogResetError,
    NotExpressible,
    NotModified,
    RegistryTransaction,
    Reply,
    StructureEntry,
    StructureQuery,
)
from contexture.sources.sdmx.registry.interface import RegistryFlavour
from contexture.sources.sdmx.urn import is_registration

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
MEDIA_TYPE = Format.SDMX_ML_2_1.media_type
Codes = tuple[str, ...]


class FakeRegistry:
    """The port of registries, without any network.

    Attributes:
        address, product: what it says of itself.
        has_log, has_history: what it offers.
        unlisted: URNs that its list leaves out.
        withheld: URNs that answers about many leave out.
        added: code lists, by URN, that answers about many hold beside what there is.
        too_large: answers about many are refused.
        denied: URNs that it denies to hold when it is asked for one.
        denies_all: it denies everything when it is asked for one.
        inexpressible: URNs that it holds and can't express.
        inexpressible_in: the same for single media types.
        forms: media types that it writes; None: whatever it is asked for.
        insists: asked for another form, it answers in its own.
        broken: URNs of which it gives half a message; a number is how often.
        forgotten: the log lacks the transactions up to this one.
        hidden: the last transactions, so many, are not in the log yet.
        reaches_back: its search goes back to its first transaction.
        modified: when it says that it last changed.
        ill: it fails when it is asked whether it is well.
        whole: what it answers about one structure in a format that can't be split.
        hides_registrations: its log shows that data registrations changed, and not which.
        asked: what it was asked.
    """

    address, product = "memory", "a fake"

    def __init__(self, *, has_log: bool = True, has_history: bool = True) -> None:
        self.has_log, self.has_history = has_log, has_history
        self.flavour: RegistryFlavour = "fmr" if has_log else "generic"
        self.log: list[RegistryTransaction] = []
        self._moments: list[dict[str, Codes]] = [{}]
        self.unlisted: set[str] = set()
        self.withheld: set[str] = set()
        self.added: dict[str, Codes] = {}
        self.too_large = False
        self.denied: set[str] = set()
        self.denies_all = False
        self.inexpressible: set[str] = set()
        self.inexpressible_in: dict[str, set[str]] = {}
        self.forms: set[str] | None = None
        self.insists = False
        self.broken: dict[str, int] = {}
        self.forgotten = self.hidden = 0
        self.reaches_back = True
        self.modified: str | None = None
        self.ill = False
        self.whole: bytes | None = None
        self.hides_registrations = False
        self.asked: list[str] = []

    # What a test does with it.

    def submit(self, structures: Mapping[str, Codes] | None = None, *, delete: Iterable[str] = ()) -> int:
        """One transaction; code lists by URN."""
        given, gone = dict(structures or {}), tuple(delete)
        now = {urn: codes for urn, codes in {**self._moments[-1], **given}.items() if urn not in gone}
        self._moments.append(now)
        number = len(self.log) + 1
        at = NOON + timedelta(minutes=number)
        added = tuple(urn for urn in given if urn not in self._moments[-2])
        if self.hides_registrations and all(map(is_registration, (*given, *gone))):
            self.log.append(RegistryTransaction(number, at, "Replace", hides_registrations=True))
        else:
            self.log.append(RegistryTransaction(number, at, "Replace", tuple(given), gone, added))
        return number

    def at_one_moment(self, first: int, second: int) -> None:
        """Two transactions have one time."""
        self.log[first - 1] = replace(self.log[first - 1], at=self.log[second - 1].at)

    @property
    def now(self) -> Mapping[str, Codes]:
        """What it holds."""
        return dict(self._moments[-1])

    def message(self, urn: str) -> bytes:
        """What it answers about one structure that it holds."""
        return _message([urn], self._moments[-1])

    # The port.

    def probe(self) -> None:
        self.asked.append("probe")
        if self.ill:
            raise RetriableError("the registry is ill", next_step="wait")

    def list_structures(self, media_type: str | None = None) -> StructureEntry:
        self.asked.append("held")
        listed = tuple(urn for urn in self._moments[-1] if urn not in self.unlisted)
        return StructureEntry(listed, last_modified=self.modified)

    def unchanged_since(self, last_modified: str) -> bool:
        self.asked.append(f"unchanged since {last_modified}")
        return last_modified == self.modified

    def queries(self, urns: Sequence[str]) -> tuple[StructureQuery, ...]:
        named = [Urn.parse(urn) for urn in urns]
        return tuple(dict.fromkeys(StructureQuery(each.class_name, each.agency) for each in named))

    def read(
        self, query: StructureQuery, media_type: str, into: Path, *, unless_modified_since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        self.asked.append(str(query))
        if not self._writes(media_type):
            return NotExpressible("not in this form")
        if self.too_large:
            raise ReplyTooLargeError("too large", next_step="ask for less")
        named = {urn: Urn.parse(urn) for urn in self._moments[-1]}
        found = [urn for urn, each in named.items() if (each.class_name, each.agency) == (query.kind, query.agency)]
        given = [urn for urn in found if urn not in self.withheld | self.inexpressible]
        return self._reply(into, [*given, *self.added], {**self._moments[-1], **self.added})

    def read_one(
        self, urn: str, media_type: str, into: Path, *, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        self.asked.append(urn)
        there = self._moments[-1]
        if as_of is not None and self.has_history and not is_registration(urn):
            there = self._moments[sum(transaction.at <= as_of for transaction in self.log)]
        if urn not in there or urn in self.denied or self.denies_all:
            return None
        cannot = self.inexpressible | self.inexpressible_in.get(media_type, set())
        if urn in cannot or not self._writes(media_type):
            return NotExpressible("not in this format")
        if self.whole is not None:
            into.write_bytes(self.whole)
            return Reply(media_type, into, len(self.whole), NOON)
        reply = self._reply(into, [urn], there)
        if self.broken.get(urn, 0):
            self.broken[urn] -= 1
            into.write_bytes(into.read_bytes()[:300])
        return reply

    def _writes(self, media_type: str) -> bool:
        if self.forms is None or media_type in self.forms:
            return True
        if self.insists:
            raise FormatNotOfferedError("it answers with something else", next_step="ask for that")
        return False

    def transactions(self, after: int | None) -> Log:
        self.asked.append(f"log {after}")
        if after is None:
            return Log(len(self.log))
        if after > len(self.log):
            raise LogResetError("another log", next_step="run in mode full")
        listed = self.log[max(after, self.forgotten) : len(self.log) - self.hidden]
        return Log(len(self.log), tuple(listed), self.forgotten if self.forgotten > after else None)

    def period(self, start: datetime, end: datetime) -> LogPeriod:
        self.asked.append("period")
        before = sum(each.at < start for each in self.log)
        return LogPeriod(before, tuple(each.id for each in self.log if start <= each.at < end), self.reaches_back)

    def close(self) -> None:
        self.asked.append("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _reply(self, into: Path, urns: Sequence[str], there: Mapping[str, Codes]) -> Reply | None:
        if not urns:
            return None
        into.write_bytes(_message(urns, there))
        return Reply(MEDIA_TYPE, into, into.stat().st_size, NOON)


def _message(urns: Sequence[str], there: Mapping[str, Codes]) -> bytes:
    named = {urn: Urn.parse(urn) for urn in urns}
    if all(map(is_registration, urns)):
        return registrations.response(
            *(
                registrations.registration(each.id, " ".join(there[urn]), agency=each.agency)
                for urn, each in named.items()
            )
        )
    written = [codelist(each.id, each.version, *there[urn], agency=each.agency) for urn, each in named.items()]
    return codelists(*written)
