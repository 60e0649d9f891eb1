"""What a registry has shown so far of what it gives in a format."""

from __future__ import annotations

from contexture.sdmx.registries.port import Query


class Experience:
    """Which structures came in which format, and which kinds never do."""

    def __init__(self) -> None:
        self._came: dict[str, dict[str, Query]] = {}
        self._never: set[tuple[str, str]] = set()
        self._looked_for: set[str] = set()

    def came(self, query: Query, media_type: str) -> None:
        """One structure was given."""
        self._came.setdefault(media_type, {})[query.kind] = query
        self._never.discard((query.kind, media_type))

    def went(self, query: Query, media_type: str) -> None:
        """It is not given any more, and shows nothing from now on."""
        given = self._came.get(media_type, {})
        if given.get(query.kind) == query:
            del given[query.kind]

    def never_comes(self, query: Query, media_type: str) -> None:
        """One structure is there, and not given though others are."""
        if query.kind not in self._came.get(media_type, {}):
            self._never.add((query.kind, media_type))

    def is_never_given(self, query: Query, media_type: str) -> bool:
        """Whether the format is known not to express this kind."""
        return (query.kind, media_type) in self._never

    def is_new_to(self, media_type: str) -> bool:
        """Whether nothing is known of the format; the first question about that counts as knowing."""
        if media_type in self._looked_for or self._came.get(media_type):
            return False
        self._looked_for.add(media_type)
        return True

    def another(self, query: Query, media_type: str) -> Query | None:
        """A structure that was given in the format; one of the same kind rather than of another."""
        given = self._came.get(media_type, {})
        own = given.get(query.kind)
        others = [own, *given.values()] if own else list(given.values())
        return next((each for each in others if each != query), None)
