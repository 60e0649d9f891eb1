"""A small context broker without a network that answers wrongly at random, while its health probe is green."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Literal

import httpx
import orjson

from contexture_sandbox.context_broker import SeedEntity, api
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from contexture_sandbox.context_broker.loading import load
from contexture_sandbox.context_broker.times import shown

Adversary = Literal["alternating", "independent"]
"""`alternating`: of two answers in succession to one client, one is true. `independent`: one in five is false."""

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NOW = NEW_YEAR + timedelta(days=20)
TENANT = "s"
PATH = "/city"
_TOTALS = ("fiware-total-count", "ngsild-results-count")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class UnreliableBroker:
    """Up to 40 entities of one type, on which others write between any two answers.

    Args:
        flavour: of an NGSI-LD broker; "" for NGSIv2.
        random: makes every choice, so that a seed repeats a whole walk.
        adversary: which answers may be false.
        writes: how likely an entity is changed, deleted or created after an answer.

    Attributes:
        deleted, changed: ids of entities to which that was done since the start.
        false_answers: how many there were.
    """

    flavour: str
    random: Random
    adversary: Adversary
    writes: float = 0.0
    deleted: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    false_answers: int = 0

    def __post_init__(self) -> None:
        self._broker = Broker()
        self._broker.store.clock.freeze(NOW)
        self._face = LinkedDataFace(self._broker, self.flavour) if self.flavour else None
        if self._face is not None:
            self._face.load([], tenant=TENANT)
        self._created = 0
        for _ in range(self.random.choice((0, 1, 2, self.random.randint(3, 40), self.random.randint(3, 40)))):
            created = NEW_YEAR + timedelta(seconds=self._created // 3)  # some have one time of creation
            self._create(created, created + timedelta(hours=self.random.randint(0, 470)))

    def entities(self) -> dict[str, datetime]:
        """The time of the last change of every entity, by id."""
        if self._face is not None:
            documents = self._face._tenants[TENANT]
            held = [(one.id, one.modified_us) for one in documents.held.values()]
        else:
            tenant = self._broker.store.tenant(TENANT)
            held = [(one.id, one.modified_at_us or 0) for one in tenant.entities.values()]
        return {name: _EPOCH + timedelta(microseconds=time) for name, time in held}

    def transport(self) -> httpx.MockTransport:
        """The network of one client."""
        return httpx.MockTransport(_Line(self).answer)

    def true_answer(self, request: httpx.Request) -> httpx.Response:
        """What the broker answers, before anything is made false; its clock goes on."""
        self._broker.store.clock.advance(self.random.choice((0.0, 0.02, 0.3)))
        segments = tuple(request.url.path.strip("/").split("/"))
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = Call(request.method, segments, dict(request.url.params), headers, request.content, "c")
        answer = api.answer(self._broker, call)
        now = _EPOCH + timedelta(microseconds=self._broker.store.clock.now())
        sent = {name.lower(): value for name, value in answer.headers.items()}
        sent["date"] = now.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return httpx.Response(answer.status, content=answer.body, headers=sent)

    def write(self) -> None:
        """Others write, perhaps."""
        if self.random.random() >= self.writes:
            return
        now = _EPOCH + timedelta(microseconds=self._broker.store.clock.now())
        there = sorted(self.entities())
        act = self.random.choice(("create", "change", "change", "delete"))
        if act == "create" or not there:
            self._create(now, now)
        elif act == "change":
            self._change(self.random.choice(there), now)
        else:
            self._delete(self.random.choice(there))

    def _create(self, created: datetime, modified: datetime) -> None:
        # No order of ids is that of creation.
        name = f"urn:ngsi-ld:Device:{self._created * 37 % 101:03}-{self._created}"
        self._created += 1
        if self._face is not None:
            self._put(name, created)
            self._put(name, modified)
        else:
            seed = SeedEntity(TENANT, PATH, {"id": name, "type": "Device"}, created, modified)
            load(self._broker.store, [seed])

    def _put(self, name: str, time: datetime) -> None:
        assert self._face is not None
        self._face.load([{"id": name, "type": "Device"}], tenant=TENANT, at=shown(_microseconds(time)))

    def _change(self, name: str, now: datetime) -> None:
        self.changed.add(name)
        if self._face is not None:
            self._put(name, now)
            return
        tenant = self._broker.store.tenant(TENANT)
        for entity in list(tenant.of_id(name)):
            tenant.put(replace(entity, modified_at_us=_microseconds(now)))

    def _delete(self, name: str) -> None:
        self.deleted.add(name)
        if self._face is not None:
            self._face.remove(name, tenant=TENANT)
            return
        tenant = self._broker.store.tenant(TENANT)
        for entity in list(tenant.of_id(name)):
            tenant.remove(entity.key)


class _Line:
    """What one client is answered."""

    def __init__(self, broker: UnreliableBroker) -> None:
        self._broker = broker
        self._last_was_false = False
        self._previous: httpx.Response | None = None
        self._asked = ""

    def answer(self, request: httpx.Request) -> httpx.Response:
        """A true answer, or one made false; probes are always answered truly."""
        true = self._broker.true_answer(request)
        if not request.url.path.endswith("/entities") or true.status_code != 200:
            return true
        # What a count was answered with is no page: it has other attributes.
        asked = f"{request.url.params.get('attrs')} {request.url.params.get('limit') == '0'}"
        if asked != self._asked:
            self._asked, self._previous = asked, None
        given = self._falsified(true) if self._is_false() else true
        self._previous = true
        self._broker.write()
        return given

    def _is_false(self) -> bool:
        random, adversary = self._broker.random, self._broker.adversary
        if adversary == "independent":
            return random.random() < 0.2
        self._last_was_false = not self._last_was_false and random.random() < 0.5
        return self._last_was_false

    def _falsified(self, true: httpx.Response) -> httpx.Response:
        self._broker.false_answers += 1
        random = self._broker.random
        ways: tuple[Callable[[httpx.Response], httpx.Response], ...] = (
            _nothing,
            self._cut,
            self._repeated,
            self._miscounted,
        )
        return random.choice(ways)(true)

    def _cut(self, true: httpx.Response) -> httpx.Response:
        rows = orjson.loads(true.content)
        kept = rows[: self._broker.random.randint(0, len(rows))]
        total = self._broker.random.choice((None, len(kept)))
        return _answered(true, orjson.dumps(kept), total)

    def _repeated(self, true: httpx.Response) -> httpx.Response:
        previous = self._previous
        if previous is None:
            return _nothing(true)
        totals = {name: previous.headers.get(name, "7") for name in _TOTALS if name in true.headers}
        headers = {name: value for name, value in previous.headers.items() if name != "content-length"}
        return httpx.Response(200, content=previous.content, headers=headers | totals)

    def _miscounted(self, true: httpx.Response) -> httpx.Response:
        return _answered(true, true.content, self._broker.random.randint(0, 45))


def _nothing(true: httpx.Response) -> httpx.Response:
    return _answered(true, b"[]", 0)


def _answered(true: httpx.Response, body: bytes, total: int | None) -> httpx.Response:
    headers = {name: value for name, value in true.headers.items() if name != "content-length"}
    if total is not None:
        headers |= {name: str(total) for name in _TOTALS if name in headers}
    return httpx.Response(200, content=body, headers=headers)


def _microseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)
