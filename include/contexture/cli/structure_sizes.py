"""The sizes of what a publication selects from a registry, before any of it is sent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.cli.record_sizes import Message, RecordSize, bare
from contexture.cli.structure_forms import Forms
from contexture.errors import RetriableError
from contexture.sources.sdmx import Artefact, StructureMessageError, split
from contexture.sources.sdmx.registry import (
    NotExpressible,
    Registry,
    Reply,
    read_in,
    read_one_in,
    same_artefact,
    splittable,
)
from contexture.sources.sdmx.transcoding import NotTranscodableError

if TYPE_CHECKING:
    from contexture.sending.size_limits import Exceeded, SizeLimits

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A structure that would stop the producer.

    Attributes:
        urn: of the structure.
        size_bytes: of key and value.
        topics: that it goes to.
        exceeded: the limits that it is above.
    """

    urn: str
    size_bytes: int
    topics: tuple[str, ...]
    exceeded: tuple[Exceeded, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What was measured.

    Attributes:
        selected: how many structures are.
        measured: how many of them were read.
        largest_urn, largest_bytes: the greatest of them.
        too_large: those above a limit.
        inexpressible: reasons, by the URN of what the format can't express.
        gone: selected, and not there any more when they were read.
    """

    selected: int
    measured: int = 0
    largest_urn: str | None = None
    largest_bytes: int = 0
    too_large: tuple[TooLarge, ...] = ()
    inexpressible: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    """What is found on the way; `waiting`: what is still to be read, by `same_artefact`."""

    waiting: dict[str, str]
    topics: Mapping[str, tuple[str, ...]]
    limits: SizeLimits
    sent_as: RecordSize
    measured: int = 0
    largest: tuple[int, str | None] = (0, None)
    too_large: list[TooLarge] = field(default_factory=list)
    inexpressible: dict[str, str] = field(default_factory=dict)

    def note(self, urn: str, media_type: str, size: int, message: Message) -> None:
        """Compares one structure with the limits."""
        size, message = self.sent_as(urn, media_type, size, message)
        size += len(urn.encode())
        self.measured += 1
        if size > self.largest[0]:
            self.largest = (size, urn)
        topics = self.topics.get(urn, ())
        exceeded = self.limits.exceeded(size, lambda: compressed(message(), self.limits.compression), topics)
        if exceeded:
            self.too_large.append(TooLarge(urn, size, topics, exceeded))


def measure(
    registry: Registry,
    topics: Mapping[str, tuple[str, ...]],
    forms: Forms,
    limits: SizeLimits,
    progress: Progress = lambda done, of: None,
    sent_as: RecordSize = bare,
) -> Sizes:
    """The sizes of structures, each in the record that would be sent.

    Args:
        registry: that holds them.
        topics: where each structure goes; those that go nowhere are left out.
        forms: in which they are read.
        limits: what they are compared with.
        progress: gets how many were read, and of how many.
        sent_as: says what becomes of a message: `bare`, or `enveloped`.

    Raises:
        RegistryUnavailableError: the registry is away, ill, or answers with less than whole messages.
        ConfigurationError: it refuses us, or answers in another format.
    """
    tally = _Tally({same_artefact(urn): urn for urn in topics}, topics, limits, sent_as)
    with tempfile.TemporaryDirectory(prefix="contexture-sizes-") as folder:
        into = Path(folder) / "reply"
        if splittable(forms.media_type):
            for query in registry.queries(tuple(topics)):
                reply = read_in(registry, forms.asked_for, query, into)
                if reply is not None:
                    _note_all(tally, reply, forms)
                progress(len(topics) - len(tally.waiting), len(topics))
        gone = _one_by_one(registry, tally, forms, into, progress)
    size, urn = tally.largest
    return Sizes(len(topics), tally.measured, urn, size, tuple(tally.too_large), tally.inexpressible, gone)


def compressed(message: bytes, codec: str) -> int:
    """Bytes of a message as a client compresses it."""
    if codec == "none":
        return len(message)
    import pyarrow as pa

    return int(pa.compress(message, codec=codec).size)


def _note_all(tally: _Tally, reply: Reply, forms: Forms) -> None:
    for named, artefact in _artefacts(reply):
        urn = tally.waiting.pop(named, None)
        if urn is None:
            continue
        try:
            size, message = forms.sent(artefact)
        except NotTranscodableError as error:
            tally.inexpressible[urn] = error.message
        else:
            tally.note(urn, forms.media_type, size, message)


def _artefacts(reply: Reply) -> Iterator[tuple[str, Artefact]]:
    """What is in a message, by names."""
    with reply.path.open("rb") as stream:
        try:
            for each in split(stream, reply.media_type):
                if each.urn is not None:
                    yield same_artefact(each.urn), each
        except StructureMessageError as error:
            raise RetriableError(
                f"the registry answers with a broken message: {error.message}",
                next_step="look into the registry's log, and try again",
            ) from error


def _one_by_one(registry: Registry, tally: _Tally, forms: Forms, into: Path, progress: Progress) -> tuple[str, ...]:
    """What no bounded question brought; what can't be split is never asked for otherwise. Gives what is gone."""
    gone: list[str] = []
    for named, urn in tuple(tally.waiting.items()):
        reason = ""
        for reply in read_one_in(registry, forms.asked_for, urn, into):
            if reply is None:
                gone.append(urn)
            elif isinstance(reply, NotExpressible):
                reason = reply.reason
            elif splittable(forms.media_type):
                _note_all(tally, reply, forms)
            else:
                tally.note(urn, reply.media_type, reply.size, into.read_bytes)
                tally.waiting.pop(named)
            if named not in tally.waiting:
                break
        if tally.waiting.pop(named, None) and reason:
            tally.inexpressible[urn] = reason
        progress(len(tally.topics) - len(tally.waiting), len(tally.topics))
    return tuple(gone)
