"""URL parameters: the ones Orion knows are checked as it does, all others are ignored as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from contexture_sandbox.context_broker.answers import bad_request
from contexture_sandbox.context_broker.rendering import Form

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000
KNOWN = frozenset({
    "limit", "offset", "options", "attrs", "metadata", "orderBy", "q", "mq", "id", "type", "idPattern", "typePattern",
    "georel", "geometry", "coords",
})  # fmt: skip
OPTIONS = frozenset({
    "count", "keyValues", "values", "unique", "append", "upsert", "skipForwarding", "noAttrDetail", "flowControl",
    "forcedUpdate", "overrideMetadata", "skipInitialNotification", "dateCreated", "dateModified",
})  # fmt: skip
REPRESENTATIONS = ("keyValues", "values", "unique")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one request, checked one by one; `given` holds those that are texts."""

    given: Mapping[str, str]
    options: frozenset[str]
    limit: int
    offset: int

    def list_of(self, name: str) -> tuple[str, ...]:
        """A comma-separated parameter; empty when it was not given."""
        text = self.given.get(name)
        return tuple(part.strip() for part in text.split(",")) if text else ()

    @property
    def form(self) -> Form:
        """How the answer is to look."""
        chosen = [name for name in REPRESENTATIONS if name in self.options]
        attrs = self.list_of("attrs")
        old_style = tuple(name for name in ("dateCreated", "dateModified") if name in self.options)
        if old_style:
            attrs = (*(attrs or ("*",)), *old_style)
        return Form(chosen[0] if chosen else "normalized", attrs, self.list_of("metadata"))


def parse_parameters(given: Mapping[str, str]) -> Parameters:
    """Check a request's parameters.

    Raises:
        Refusal: 400, with Orion's words.
    """
    for name in given:
        if name in KNOWN and not given[name]:
            raise bad_request(f"Empty right-hand-side for URI param /{name}/")
    for one, other, words in (("type", "typePattern", "type, typePattern"), ("id", "idPattern", "id, IdPattern")):
        if one in given and other in given:
            raise bad_request(f"Incompatible parameters: {words}")
    return Parameters(given, _options(given.get("options")), _limit(given.get("limit")), _offset(given.get("offset")))


def _options(text: str | None) -> frozenset[str]:
    options = frozenset(text.split(",")) if text else frozenset[str]()
    formats = sum(name in options for name in REPRESENTATIONS)
    if not options <= OPTIONS or formats > 1:
        raise bad_request("Invalid value for URI param /options/")
    return options


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit():
        raise bad_request(f"Bad pagination limit: /{text}/ [must be a positive integer number]")
    if int(text) > MAX_LIMIT:
        raise bad_request(f"Bad pagination limit: /{text}/ [max: {MAX_LIMIT}]")
    return int(text)


def _offset(text: str | None) -> int:
    if text is None:
        return 0
    if not text.isascii() or not text.isdigit():
        raise bad_request(f"Bad pagination offset: /{text}/ [must be a decimal number]")
    return int(text)
