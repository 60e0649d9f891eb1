"""Which questions cover a selection: agencies by kind where most of what they hold is wanted, else one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from contexture.sdmx.registries.port import Query
from contexture.sdmx.urns import Urn

_TOGETHER_FROM = 4
_WANTED_SHARE = 0.5


def planned(urns: Sequence[str], held: Iterable[str] = ()) -> tuple[Query, ...]:
    """Questions that together cover these structures, each kind of each agency in one where that is worth it.

    Args:
        urns: what is wanted.
        held: everything there is, where that is known: it tells how much a question would bring that nobody wants.
    """
    wanted: dict[tuple[str, str], list[Urn]] = {}
    for urn in dict.fromkeys(urns):
        named = Urn.parse(urn)
        wanted.setdefault((named.class_name, named.agency), []).append(named)
    there = Counter((named.class_name, named.agency) for named in map(Urn.parse, held))
    questions: list[Query] = []
    for (kind, agency), group in sorted(wanted.items()):
        of_all = max(there[kind, agency], len(group))
        if len(group) >= _TOGETHER_FROM and len(group) >= of_all * _WANTED_SHARE:
            questions.append(Query(kind, agency))
        else:
            questions += [Query(kind, agency, named.id, named.version) for named in group]
    return tuple(questions)


def exactly(urn: str) -> Query:
    """The question for one structure.

    Raises:
        ValueError: it is no URN.
    """
    named = Urn.parse(urn).maintainable()
    return Query(named.class_name, named.agency, named.id, named.version)
