"""The keyset cursor, walked over a list that changes under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contexture.errors import RetriableError
from contexture.sources.ngsi.entity_head import EntityHead, moment
from contexture.sources.ngsi.paging import KeysetCursor, PageRequest, sliced
from contexture.sources.ngsi.query import EntityQuery, KeysetField

pytestmark = pytest.mark.slow

START = datetime(2026, 1, 1, tzinfo=UTC)
Change = tuple[str, int]


def text(microseconds: int) -> str:
    time = START + timedelta(microseconds=microseconds)
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


@dataclass(frozen=True)
class Answer:
    heads: Sequence[EntityHead]
    broker_time: datetime = START + timedelta(days=1)


@dataclass
class Entities:
    """Times as a broker stores them, in microseconds, finer than it shows them."""

    created: dict[str, int]
    modified: dict[str, int] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    clock: int = 10_000_000
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.modified = dict(self.created) | self.modified

    def answer(self, cursor: KeysetCursor) -> Answer:
        times = self.created if cursor.field == "dateCreated" else self.modified
        since, until = moment(cursor.since), moment(cursor.until) if cursor.since else None
        stored = {id_: START + timedelta(microseconds=time) for id_, time in times.items()}
        chosen = [
            id_ for id_, time in stored.items() if (since is None or time >= since) and (until is None or time <= until)
        ]
        ordered = sorted(chosen, key=lambda id_: (times[id_], id_))[cursor.offset : cursor.offset + cursor.limit]
        return Answer([self._sighting(id_) for id_ in ordered])

    def _sighting(self, id_: str) -> EntityHead:
        shown = self.shown.get(id_)
        return EntityHead("/", id_, "t", shown or text(self.created[id_]), shown or text(self.modified[id_]))

    def change(self, change: Change) -> None:
        kind, number = change
        self.clock += 700
        if kind == "insert":
            self.created[f"new{self.clock}"] = self.modified[f"new{self.clock}"] = self.clock
        elif self.created:
            id_ = sorted(self.created)[number % len(self.created)]
            if kind == "delete":
                self.gone.add(id_)
                del self.created[id_], self.modified[id_]
            else:
                self.modified[id_] = self.clock


def walk(
    entities: Entities, along: KeysetField, limit: int, changes: Sequence[Sequence[Change]] = ()
) -> Iterator[EntityHead]:
    """The rows of a walk that are new to it; between two pages some entities change."""
    yield from walk_query(entities, EntityQuery("/", field=along, page_size=limit), iter(changes))


def walk_query(entities: Entities, query: EntityQuery, pending: Iterator[Sequence[Change]]) -> Iterator[EntityHead]:
    cursor: KeysetCursor | None = KeysetCursor.start(query)
    for _ in range(10_000):
        if cursor is None:
            return
        page = entities.answer(cursor)
        for change in next(pending, ()):
            entities.change(change)
        step = cursor.advance(page)
        yield from (page.heads[index] for index in step.fresh)
        cursor = step.following
    pytest.fail("the walk does not end")


# Few different milliseconds, so that many entities share one; different microseconds within them.
TIMES = st.integers(0, 4).flatmap(lambda millisecond: st.integers(millisecond * 1000, millisecond * 1000 + 3))
STORES = st.dictionaries(st.integers(0, 99).map(lambda number: f"e{number:02}"), TIMES, max_size=40)
TIED = st.dictionaries(st.integers(0, 99).map(lambda number: f"e{number:02}"), st.integers(1000, 1003), min_size=12)
CHANGES = st.lists(
    st.lists(st.tuples(st.sampled_from(["insert", "update", "delete"]), st.integers(0, 99)), max_size=3), max_size=12
)
FIELDS = st.sampled_from(["dateCreated", "dateModified"])


@given(STORES, FIELDS, st.integers(1, 9))
def test_a_quiet_store_is_walked_in_order_without_loss_or_repeat(
    created: dict[str, int], along: KeysetField, limit: int
) -> None:
    walked = [row.id for row in walk(Entities(created), along, limit)]
    assert walked == sorted(created, key=lambda id_: (created[id_], id_))


@settings(max_examples=400)
@given(STORES | TIED, FIELDS, st.integers(2, 6), CHANGES)
def test_what_stays_all_the_time_is_never_missed_and_comes_once_for_each_of_its_versions(
    created: dict[str, int], along: KeysetField, limit: int, changes: list[list[Change]]
) -> None:
    entities = Entities(dict(created))
    walked = [(row.id, row.modified) for row in walk(entities, along, limit, changes)]
    assert set(created) - entities.gone <= {id_ for id_, _ in walked}
    assert len(walked) == len(set(walked))


CUTS = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(lambda cuts: [text(cut * 1000) for cut in cuts])


@settings(max_examples=400)
@given(STORES | TIED, st.integers(2, 6), CUTS)
def test_slices_of_a_quiet_store_meet_what_one_walk_meets_in_its_order(
    created: dict[str, int], limit: int, cuts: list[str]
) -> None:
    entities = Entities(created)
    slices = sliced(EntityQuery("/", page_size=limit), sorted(cuts))
    walked = [row.id for query in slices for row in walk_query(entities, query, iter(()))]
    # What is exactly at a cut belongs to both sides; the first slice may look beyond its end.
    assert list(dict.fromkeys(walked)) == sorted(created, key=lambda id_: (created[id_], id_))


@settings(max_examples=400)
@given(STORES | TIED, st.integers(2, 6), CUTS, CHANGES)
def test_what_stays_is_never_missed_by_all_slices(
    created: dict[str, int], limit: int, cuts: list[str], changes: list[list[Change]]
) -> None:
    entities, pending = Entities(dict(created)), iter(changes)
    slices = sliced(EntityQuery("/", page_size=limit), cuts)
    walked = {row.id for query in slices for row in walk_query(entities, query, pending)}
    assert set(created) - entities.gone <= walked


@settings(max_examples=200)
@given(STORES, st.integers(2, 6), CUTS, st.data())
def test_times_shadowed_by_user_attributes_belong_to_the_slice_of_their_stored_time(
    created: dict[str, int], limit: int, cuts: list[str], data: st.DataObject
) -> None:
    lies = st.sampled_from(["1999-01-01T00:00:00.000Z", "2050-01-01T00:00:00.000Z", text(2500)])
    liars = data.draw(st.dictionaries(st.sampled_from(sorted(created)), lies, max_size=1) if created else st.just({}))
    entities = Entities(dict(created), shown=liars)
    slices = sliced(EntityQuery("/", page_size=limit), cuts)
    assert {row.id for query in slices for row in walk_query(entities, query, iter(()))} == set(created)


@settings(max_examples=200)
@given(STORES, st.integers(2, 6), st.data())
def test_times_shadowed_by_user_attributes_lose_nothing_around_them(
    created: dict[str, int], limit: int, data: st.DataObject
) -> None:
    lies = st.sampled_from(["1999-01-01T00:00:00.000Z", "2050-01-01T00:00:00.000Z"])
    liars = data.draw(st.dictionaries(st.sampled_from(sorted(created)), lies) if created else st.just({}))
    walked = {row.id for row in walk(Entities(dict(created), shown=liars), "dateCreated", limit)}
    assert walked == set(created)


def test_one_believable_lie_does_not_move_the_cursor_over_others() -> None:
    created = {f"e{number}": number * 1000 for number in range(20)}
    shown = {"e3": text(15_000)}  # the last row of the first page claims a time eleven rows ahead
    assert {row.id for row in walk(Entities(created, shown=shown), "dateCreated", 4)} == set(created)


def test_entities_that_never_had_times_are_walked_by_offset() -> None:
    rows = [EntityHead("/", f"old{number}", "t", None, None) for number in range(7)]
    cursor: KeysetCursor | None = KeysetCursor("dateCreated", None, 3)
    walked = []
    while cursor is not None:
        page = Answer(rows[cursor.offset : cursor.offset + 3])
        step = cursor.advance(page)
        walked += [page.heads[index].id for index in step.fresh]
        cursor = step.following
    assert walked == [f"old{number}" for number in range(7)]


def row(id_: str, millisecond: int) -> EntityHead:
    return EntityHead("/", id_, "t", text(millisecond * 1000), text(millisecond * 1000))


def test_a_first_slice_that_looked_beyond_its_end_is_over() -> None:
    cursor = KeysetCursor("dateCreated", None, 3, until=text(2000))
    rows = [row("a", 1), row("b", 3), row("c", 4)]
    assert cursor.advance(Answer(rows)) == PageRequest((0, 1, 2), None)


def test_a_slice_keeps_its_end_and_believes_no_time_beyond_it() -> None:
    cursor = KeysetCursor("dateCreated", text(1000), 3, until=text(9000))
    following = cursor.advance(Answer([row("a", 2), row("b", 3), row("c", 10)])).following
    assert following is not None
    assert (following.since, following.until) == (text(2000), text(9000))


def test_a_second_short_page_without_anything_new_ends_the_walk() -> None:
    first = KeysetCursor("dateCreated", None, 3).advance(Answer([row("a", 1), row("b", 2)]))
    assert first.following is not None
    assert (first.fresh, first.following.since) == ((0, 1), text(1000))
    assert first.following.advance(Answer([row("a", 1), row("b", 2)])) == PageRequest((), None)


def test_a_third_short_page_ends_the_walk_though_others_still_write() -> None:
    first = KeysetCursor("dateCreated", None, 3).advance(Answer([row("a", 1)])).following
    assert first is not None
    second = first.advance(Answer([row("a", 1), row("b", 9)]))
    assert second.fresh == (1,)
    assert second.following is not None
    assert second.following.advance(Answer([row("b", 9), row("c", 10)])) == PageRequest((1,), None)


def test_a_row_without_an_id_that_is_shown_again_is_the_same_row() -> None:
    nameless = EntityHead("/", None, "t", text(1000), text(1000))
    first = KeysetCursor("dateCreated", None, 4).advance(Answer([nameless, nameless]))
    assert first.fresh == (0, 1)
    assert first.following is not None
    assert first.following.advance(Answer([nameless, nameless, nameless])).fresh == (2,)


def test_a_page_that_was_cut_short_ends_no_walk() -> None:
    cut = KeysetCursor("dateCreated", None, 3).advance(Answer([row("a", 1)])).following
    assert cut is not None
    going_on = cut.advance(Answer([row("a", 1), row("b", 2), row("c", 3)]))
    assert going_on.fresh == (1, 2)
    assert going_on.following is not None
    assert (going_on.following.since, going_on.following.short_pages) == (text(2000), 0)


def test_an_empty_page_is_asked_for_again() -> None:
    once = KeysetCursor("dateCreated", None, 3).advance(Answer([])).following
    assert once is not None
    assert (once.since, once.offset) == (None, 0)
    assert once.advance(Answer([])) == PageRequest((), None)
    seen = once.advance(Answer([row("a", 1), row("b", 1), row("c", 1)]))
    assert seen.fresh == (0, 1, 2)
    assert seen.following is not None


def test_the_cursor_moves_to_a_time_that_two_rows_show() -> None:
    following = KeysetCursor("dateCreated", None, 3).advance(Answer([row("a", 1), row("b", 2), row("c", 3)])).following
    assert following is not None
    assert (following.since, following.offset) == ("2026-01-01T00:00:00.002Z", 0)


def test_more_ties_than_a_page_holds_step_by_offset_with_one_row_of_overlap() -> None:
    cursor = KeysetCursor("dateCreated", text(1000), 3)
    following = cursor.advance(Answer([row("a", 1), row("b", 1), row("c", 1)])).following
    assert following is not None
    assert (following.since, following.offset) == (text(1000), 2)


def test_a_row_that_left_from_before_the_overlap_starts_the_ties_again() -> None:
    stepped = (
        KeysetCursor("dateCreated", text(1000), 3).advance(Answer([row("a", 1), row("b", 1), row("c", 1)])).following
    )
    assert stepped is not None
    step = stepped.advance(Answer([row("d", 1), row("e", 1)]))  # `a` is gone, so `c` is now before the offset
    assert step.fresh == (0, 1)
    assert step.following is not None
    assert (step.following.since, step.following.offset) == (text(1000), 0)


def test_ties_that_never_come_to_rest_end_with_an_error() -> None:
    def walk_on() -> None:
        cursor: KeysetCursor | None = KeysetCursor("dateCreated", text(1000), 2)
        for number in range(1000):
            assert cursor is not None
            cursor = cursor.advance(Answer([row(f"a{number}", 1), row(f"b{number}", 1)])).following

    with pytest.raises(RetriableError, match="changed places"):
        walk_on()


@pytest.mark.parametrize(("seconds_ahead", "moves"), [(4, True), (6, False)])
def test_a_time_ahead_of_the_brokers_clock_never_moves_the_cursor(seconds_ahead: int, moves: bool) -> None:
    rows = [row("a", 1), row("b", 1000 * seconds_ahead), row("c", 1000 * seconds_ahead)]
    following = KeysetCursor("dateCreated", text(1000), 3).advance(Answer(rows, broker_time=START)).following
    assert following is not None
    assert (following.since != text(1000)) is moves


def test_the_cursor_never_moves_back() -> None:
    rows = [row("a", 5), row("b", 2), row("c", 2)]
    following = KeysetCursor("dateCreated", text(5000), 3).advance(Answer(rows)).following
    assert following is not None
    assert (following.since, following.offset) == (text(5000), 2)


def test_times_finer_than_milliseconds_are_cut_not_rounded() -> None:
    fine = "2026-01-01T00:00:00.0019999Z"
    rows = [EntityHead("/", id_, "t", fine, fine) for id_ in "ab"]
    following = KeysetCursor("dateCreated", None, 2).advance(Answer(rows)).following
    assert following is not None
    assert following.since == "2026-01-01T00:00:00.001Z"


def test_a_halved_cursor_keeps_its_place() -> None:
    cursor = KeysetCursor("dateModified", text(1), 5, offset=4)
    assert (cursor.halved().limit, cursor.halved().offset, cursor.halved().since) == (2, 4, text(1))
    assert KeysetCursor("dateModified", None, 2).halved().limit == 2


def test_a_page_from_further_on_is_asked_for_again() -> None:
    """A broker, or what is before it, answers with a page of another question: rows between would be passed over."""
    cursor = KeysetCursor("dateCreated", None, 3).advance(Answer([row("a", 1), row("b", 2), row("c", 3)])).following
    assert cursor is not None
    strayed = cursor.advance(Answer([row("x", 8), row("y", 9), row("z", 10)]))
    assert strayed.fresh == ()
    assert strayed.following is not None
    assert (strayed.following.since, strayed.following.offset) == (cursor.since, 0)
    assert strayed.following.advance(Answer([row("b", 2), row("c", 3), row("d", 4)])).fresh == (2,)


def test_rows_that_changed_at_the_cursor_are_believed_gone_when_two_answers_begin_alike() -> None:
    cursor = KeysetCursor("dateModified", None, 3).advance(Answer([row("a", 1), row("b", 2), row("c", 3)])).following
    assert cursor is not None
    once = cursor.advance(Answer([row("d", 4), row("e", 5), row("f", 6)])).following
    assert once is not None
    assert once.advance(Answer([row("d", 4), row("e", 5), row("f", 6)])).fresh == (0, 1, 2)
