"""The entities of a temporal answer in pages: by places, or by anchors as Mintaka pages Orion-LD's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from contexture_sandbox.context_broker.linked_data.documents import Documents
from contexture_sandbox.context_broker.linked_data.flavours import Flavour
from contexture_sandbox.context_broker.linked_data.history import Asked, Evolution, Part, partly
from contexture_sandbox.context_broker.linked_data.pages import Window, refuse_too_broad, window
from contexture_sandbox.context_broker.linked_data.selecting import conditions

_MINTAKAS = 100


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The page that is asked for.

    Attributes:
        window: by places.
        anchor: the id that the page begins with, of a broker that pages so; None of others.
    """

    window: Window
    anchor: str | None

    @classmethod
    def of(cls, parameters: Mapping[str, str], flavour: Flavour) -> HistoryPage:
        """What the parameters ask; where anchors are, `limit` and `offset` mean nothing.

        Raises:
            Problem: a number is none, or the page is larger than the broker gives.
        """
        if flavour.version is None:
            return cls(window(parameters, flavour), None)
        size = int(parameters.get("pageSize", _MINTAKAS))
        return cls(Window(size, 0, "count" in parameters.get("options", "")), parameters.get("pageAnchor", ""))

    def cut(self, found: list[Evolution]) -> list[Evolution]:
        """The entities of the page, of those in the order of their ids."""
        if self.anchor is not None:
            return [one for one in found if one.document.id >= self.anchor][: self.window.limit]
        return found[self.window.offset : self.window.offset + self.window.limit]

    def headers(self, found: list[Evolution]) -> dict[str, str]:
        """How many there are, where that was asked, and where the next page begins."""
        count = {"ngsild-results-count": str(len(found))} if self.window.count else {}
        if self.anchor is None:
            return count
        rest = [one.document.id for one in found if one.document.id >= self.anchor][self.window.limit :]
        return count | {"page-size": str(self.window.limit)} | ({"next-page": rest[0]} if rest else {})


def history(parameters: Mapping[str, str], documents: Documents, flavour: Flavour) -> Part:
    """How the selected entities changed, also those that were deleted since; entities in the order of their ids.

    Raises:
        Problem: 400, or what the broker says to a page that is too large.
    """
    refuse_too_broad(parameters, flavour)
    asked, paged, tests = Asked.of(parameters), HistoryPage.of(parameters, flavour), conditions(parameters)
    known = (held for _, held in sorted(documents.history.items()) if all(test(held[-1]) for test in tests))
    found = [one for versions in known if (one := Evolution.of(versions, asked)) is not None]
    part = partly(paged.cut(found), asked, flavour.history_instances)
    return Part(part.bodies, part.headers | paged.headers(found), part.status)
