"""What the broker holds: one `Tenant` per service, each with its entities, its order caches and its counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import RLock

from contexture_sandbox.context_broker.model import Key, StoredEntity
from contexture_sandbox.context_broker.times import Clock

MAX_CACHED_ORDERS = 6


class Tenant:
    """The entities of one service. Every method is to be called with the store's lock held."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entities: dict[Key, StoredEntity] = {}
        self._version = 0
        self._keys_of_id: dict[str, list[Key]] = {}
        self._orders: dict[object, tuple[int, list[StoredEntity]]] = {}
        self._transient: set[Key] = set()

    def put(self, entity: StoredEntity) -> None:
        """Store, or replace what has the same key."""
        key = entity.key
        if key not in self.entities:
            self._keys_of_id.setdefault(entity.id, []).append(key)
        self.entities[key] = entity
        if entity.expires_at_us is not None:
            self._transient.add(key)
        self._version += 1

    def remove(self, key: Key) -> StoredEntity | None:
        """Take an entity out; None when there is none."""
        entity = self.entities.pop(key, None)
        if entity is None:
            return None
        keys = self._keys_of_id[entity.id]
        keys.remove(key)
        if not keys:
            del self._keys_of_id[entity.id]
        self._transient.discard(key)
        self._version += 1
        return entity

    def of_id(self, entity_id: str) -> Iterator[StoredEntity]:
        """All entities with this id, whatever their type and path."""
        return (self.entities[key] for key in self._keys_of_id.get(entity_id, ()))

    def expire(self, now_us: int) -> None:
        """Drop transient entities whose time has come."""
        for key in [key for key in self._transient if (self.entities[key].expires_at_us or 0) <= now_us]:
            self.remove(key)

    def ordered(self, name: object, sort: Callable[[list[StoredEntity]], None]) -> list[StoredEntity]:
        """All entities in an order, remembered under `name` until something is written."""
        cached = self._orders.get(name)
        if cached is not None and cached[0] == self._version:
            return cached[1]
        entities = list(self.entities.values())
        sort(entities)
        self._orders.pop(name, None)
        while len(self._orders) >= MAX_CACHED_ORDERS:
            del self._orders[next(iter(self._orders))]
        self._orders[name] = (self._version, entities)
        return entities


class Store:
    """All tenants, and the lock and clock they share."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.lock = RLock()
        self.tenants: dict[str, Tenant] = {}

    def tenant(self, name: str) -> Tenant:
        """The tenant of that (lower-cased) name, made when it is new."""
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = self.tenants[name] = Tenant(name)
        return tenant

    def existing(self, name: str) -> Tenant:
        """Returns the tenant of that name; when it does not exist, an empty one that is not stored."""
        return self.tenants.get(name) or Tenant(name)

    def count(self, service: str | None = None) -> int:
        """How many entities there are, in one service or in all."""
        with self.lock:
            tenants: Iterable[Tenant] = self.tenants.values() if service is None else [self.existing(service.lower())]
            return sum(len(tenant.entities) for tenant in tenants)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.tenants.clear()
