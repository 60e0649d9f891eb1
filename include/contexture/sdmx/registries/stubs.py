"""Lists of what a registry holds, read from stubs. Nothing is ever concluded from a list that is empty or not whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.registries.errors import IncompleteReplyError
from contexture.sdmx.registries.names import same_artefact
from contexture.sdmx.registries.port import Held
from contexture.sdmx.splitting import split


@dataclass(frozen=True, slots=True)
class Listing:
    """One answer of stubs.

    Attributes:
        urns: in its order.
        unnamed: stubs without a URN.
        last_modified: of the answer.
        is_said: it lists something, or the registry said that there is nothing; else it just was empty.
    """

    urns: tuple[str, ...] = ()
    unnamed: int = 0
    last_modified: str | None = None
    is_said: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it lists nothing, which no registry is believed."""
        return not self.urns and not self.unnamed


def listed(path: Path, media_type: str, who: str, last_modified: str | None = None) -> Listing:
    """What a message of stubs lists; nothing where it is a message without structures.

    Args:
        path: of the message.
        media_type: what the registry says that it is.
        who: for messages.
        last_modified: of the answer.

    Raises:
        IncompleteReplyError: it is no whole message, or says itself that it is not all.
    """
    with path.open("rb") as stream:
        artefacts = split(stream, media_type)
        try:
            found = [artefact.urn for artefact in artefacts]
        except StructureMessageError as error:
            raise _incomplete(f"the list of structures of {who} is no whole message: {error.message}") from error
    if notices := [finding for finding in artefacts.findings if finding.code == "notice"]:
        raise _incomplete(f"the list of structures of {who} comes with a notice: {notices[0].message}")
    urns = [urn for urn in found if urn is not None]
    return Listing(tuple(dict.fromkeys(urns)), len(found) - len(urns), last_modified, is_said=bool(found))


def all_held(listings: Iterable[Listing], who: str) -> Held:
    """Everything that several lists tell, the first one's names before those of others.

    Raises:
        IncompleteReplyError: all of them are empty.
    """
    given = [listing for listing in listings if not listing.is_empty]
    if not given:
        raise _incomplete(f"{who} lists no structure at all")
    urns: dict[str, str] = {}
    other_names: dict[str, str] = {}
    for urn in (urn for listing in given for urn in listing.urns):
        first = urns.setdefault(same_artefact(urn), urn)
        if first != urn:
            other_names[urn] = first
    unnamed = max(listing.unnamed for listing in given)
    return Held(tuple(urns.values()), other_names, unnamed, given[0].last_modified)


def _incomplete(message: str) -> IncompleteReplyError:
    return IncompleteReplyError(
        message,
        next_step="look into the registry's log, and whether the connection's credentials may read; nothing is taken "
        "for deleted, and the run is retried",
    )
