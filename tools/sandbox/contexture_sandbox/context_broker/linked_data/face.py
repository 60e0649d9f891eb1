"""The NGSI-LD API over HTTP: which function answers which request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import uuid4

import orjson

from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.linked_data.documents import HEAD, Document, Documents, texts
from contexture_sandbox.context_broker.linked_data.flavours import FLAVOURS, Flavour
from contexture_sandbox.context_broker.linked_data.history import history
from contexture_sandbox.context_broker.linked_data.pages import refuse_too_broad, window
from contexture_sandbox.context_broker.linked_data.problems import Problem, bad_request, not_found
from contexture_sandbox.context_broker.linked_data.selecting import asks_by_time, conditions
from contexture_sandbox.context_broker.times import parse_time
from contexture_sandbox.http_server import Answer, json_answer

ENTITIES = "/ngsi-ld/v1/entities"
VOCABULARY = "https://example.org/vocabulary/"
"""Where the names of all entities here are from; a client whose @context is sent sees them without it."""

_Handler = Callable[[Call, Documents], Answer]


class LinkedDataFace:
    """Answers NGSI-LD in a broker's stead; what it doesn't know it leaves to NGSIv2, as Orion-LD does.

    Args:
        broker: gives the clock, the lock and the hook between pages.
        flavour: whose habits.
    """

    def __init__(self, broker: Broker, flavour: str | Flavour) -> None:
        self.flavour = FLAVOURS[flavour] if isinstance(flavour, str) else flavour
        self._broker = broker
        self._tenants: dict[str, Documents] = {"": Documents()}
        self._maps: dict[str, list[str]] = {}
        broker.face = self.answer

    def load(self, entities: Iterable[Mapping[str, object]], *, tenant: str = "", at: str | None = None) -> None:
        """Keeps entities without any check, as written at the time `at`."""
        with self._broker.store.lock:
            documents = self._tenants.setdefault(tenant, Documents())
            for entity in entities:
                documents.put(entity, (parse_time(at) if at else None) or self._broker.store.clock.now())

    def remove(self, entity_id: str, *, tenant: str = "") -> None:
        """Takes an entity away."""
        with self._broker.store.lock:
            del self._tenants[tenant].held[entity_id]

    def forget_maps(self) -> None:
        """Lets every entity map expire."""
        self._maps.clear()

    def answer(self, call: Call) -> Answer | None:
        """The answer to a request; None for what isn't this API's."""
        try:
            return self._answer(call)
        except Problem as problem:
            return problem.answer()

    def _answer(self, call: Call) -> Answer | None:
        if call.segments == ("version",) and self.flavour.version is not None:
            return json_answer(self.flavour.version)
        if self.flavour.info is not None and call.segments == self.flavour.info[0]:
            return json_answer(self.flavour.info[1])
        if call.segments[:2] != ("ngsi-ld", "v1"):
            return None if self.flavour.version is not None else Problem(404, "ResourceNotFound", "Not found").answer()
        with self._broker.store.lock:
            return self._handler(call)(call, self._documents(call))

    def _documents_without_database(self, call: Call) -> Documents:
        """What a broker shows whose database is gone.

        Raises:
            Problem: 500; of an Orion-LD, which is an Orion, only where Orion says so.
        """
        if self.flavour.empty_without_database and call.segments[2:3] != ("subscriptions",):
            return Documents()
        raise Problem(500, "InternalError", "Database error")

    def _handler(self, call: Call) -> _Handler:
        resource = call.segments[2:3] + (("*",) if len(call.segments) > 3 else ())
        routes: dict[tuple[str, tuple[str, ...]], _Handler] = {
            ("GET", ("entities",)): self._list,
            ("POST", ("entities",)): self._create,
            ("GET", ("entities", "*")): self._show,
            ("PATCH", ("entities", "*")): self._merge,
            ("DELETE", ("entities", "*")): self._delete,
            ("GET", ("types",)): self._types,
            ("GET", ("temporal", "*")): self._history,
            ("GET", ("subscriptions",)): self._subscriptions,
        }
        handler = routes.get((call.method, resource))
        if handler is None:
            raise Problem(405, "OperationNotSupported", "Method not allowed")
        return handler

    def _documents(self, call: Call) -> Documents:
        if self._broker.faults.database_gone:
            return self._documents_without_database(call)
        tenant = call.headers.get("ngsild-tenant", "")
        if not tenant and self.flavour.version is not None:
            tenant = call.headers.get("fiware-service", "")
        if tenant not in self._tenants:
            if self.flavour.tenants_declared and call.method != "POST":
                raise Problem(404, "NonexistentTenant", "No such tenant", tenant)
            self._tenants[tenant] = Documents()
        return self._tenants[tenant]

    def _list(self, call: Call, documents: Documents) -> Answer:
        refuse_too_broad(call.parameters, self.flavour)
        asked = window(call.parameters, self.flavour)
        found, headers = self._mapped(call, self._ids(call, documents))
        page = found[asked.offset : asked.offset + asked.limit]
        held = [documents.held[one] for one in page if one in documents.held]
        headers |= asked.headers(ENTITIES, call.parameters, len(found))
        answer = json_answer([_compact(_shown(one, call), call) for one in held], headers=headers)
        self._broker.page_answered()
        return answer

    def _ids(self, call: Call, documents: Documents) -> list[str]:
        if asks_by_time(call.parameters) and not self.flavour.finds_by_time:
            return []
        tests = conditions(call.parameters)
        found = [one for one in documents.held.values() if all(test(one) for test in tests)]
        found.sort(key=_by_id if self.flavour.order == "id" else _by_creation)
        return [document.id for document in found]

    def _mapped(self, call: Call, found: list[str]) -> tuple[list[str], dict[str, str]]:
        """The ids as they were when the map was made. An expired map is replaced by a new one (clause 5.7.1.4)."""
        given = call.headers.get("ngsild-entitymap", "")
        if not self.flavour.entity_maps or not (given or call.parameters.get("entityMap") == "true"):
            return found, {}
        name = given if given in self._maps else f"urn:ngsi-ld:entitymap:{uuid4()}"
        return self._maps.setdefault(name, found), {"ngsild-entitymap": name}

    def _history(self, call: Call, documents: Documents) -> Answer:
        if not self.flavour.history or call.segments[3:] != ("entities",):
            raise Problem(501, "OperationNotSupported", "Not Implemented", "no history is kept here")
        part = history(call.parameters, documents, self.flavour)
        self._broker.page_answered()
        return json_answer([_compact(one, call) for one in part.bodies], status=part.status, headers=part.headers)

    def _show(self, call: Call, documents: Documents) -> Answer:
        document = _existing(call, documents)
        return json_answer(_compact(_shown(document, call), call))

    def _create(self, call: Call, documents: Documents) -> Answer:
        entity = _object(call)
        if not isinstance(entity.get("id"), str) or ":" not in str(entity["id"]) or not entity.get("type"):
            raise bad_request("Invalid entity", "id has to be a URI, and there has to be a type")
        if entity["id"] in documents.held:
            raise Problem(409, "AlreadyExists", "Entity already exists", str(entity["id"]))
        documents.put(entity, self._broker.store.clock.now())
        return Answer(201, headers={"location": f"{ENTITIES}/{entity['id']}"})

    def _merge(self, call: Call, documents: Documents) -> Answer:
        document = _existing(call, documents)
        documents.put({**document.content, **_object(call), "id": document.id}, self._broker.store.clock.now())
        return Answer(204)

    def _delete(self, call: Call, documents: Documents) -> Answer:
        del documents.held[_existing(call, documents).id]
        return Answer(204)

    def _types(self, call: Call, documents: Documents) -> Answer:
        names = sorted({name for document in documents.held.values() for name in document.types})
        shown = [_expanded(name, call) for name in names]
        return json_answer({"id": "urn:ngsi-ld:EntityTypeList:1", "type": "EntityTypeList", "typeList": shown})

    def _subscriptions(self, _call: Call, _documents: Documents) -> Answer:
        return json_answer([])


def _existing(call: Call, documents: Documents) -> Document:
    document = documents.held.get(call.segments[3])
    if document is None:
        raise not_found(call.segments[3])
    return document


def _object(call: Call) -> dict[str, object]:
    try:
        value = orjson.loads(call.body)
    except orjson.JSONDecodeError as error:
        raise Problem(400, "InvalidRequest", "Invalid JSON") from error
    if not isinstance(value, dict):
        raise bad_request("a JSON object is needed")
    return value


def _shown(document: Document, call: Call) -> dict[str, object]:
    options = call.parameters.get("options", "").split(",")
    return document.shown(system="sysAttrs" in options, simplified="keyValues" in options)


def _compact(entity: dict[str, object], call: Call) -> dict[str, object]:
    """Names as the client's @context makes them: full IRIs where it sent none (clause 5.5.7)."""
    if "link" in call.headers:
        return entity
    kept = HEAD | {"createdAt", "modifiedAt"}
    expanded = {name if name in kept else _expanded(name, call): value for name, value in entity.items()}
    kinds = [_expanded(name, call) for name in texts(entity["type"])]
    return {**expanded, "type": kinds if isinstance(entity["type"], list) else kinds[0]}


def _expanded(name: str, call: Call) -> str:
    return name if "link" in call.headers else VOCABULARY + name


def _by_id(document: Document) -> tuple[int, str]:
    return 0, document.id


def _by_creation(document: Document) -> tuple[int, str]:
    return document.number, document.id
