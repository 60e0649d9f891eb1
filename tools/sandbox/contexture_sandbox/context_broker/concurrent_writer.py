"""A second client that writes while a first one reads page by page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from contexture_sandbox.context_broker.model import StoredAttribute, StoredEntity
from contexture_sandbox.context_broker.store import Store, Tenant


@dataclass(slots=True)
class ConcurrentWriter:
    """Changes some entities of a service every time it is called; the same seed makes the same changes.

    Use it as `broker.faults.after_page`.

    Attributes:
        updates, deletes, inserts: how many of each at a call.
        touched: ids of what was inserted or deleted so far, so that a test knows what stayed all the time.
    """

    store: Store
    service: str
    updates: int = 5
    deletes: int = 1
    inserts: int = 1
    seed: int = 1
    service_path: str = "/churn"
    deleted: set[str] = field(default_factory=set)
    inserted: set[str] = field(default_factory=set)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def __call__(self, page: int) -> None:
        """One burst of changes."""
        with self.store.lock:
            tenant = self.store.tenant(self.service.lower())
            for entity in self._pick(tenant, self.updates):
                self._update(tenant, entity)
            for entity in self._pick(tenant, self.deletes):
                tenant.remove(entity.key)
                self.deleted.add(entity.id)
            for number in range(self.inserts):
                self._insert(tenant, f"churn-{self.seed}-{page}-{number}")

    def _pick(self, tenant: Tenant, number: int) -> list[StoredEntity]:
        entities = list(tenant.entities.values())
        return self._random.sample(entities, min(number, len(entities)))

    def _update(self, tenant: Tenant, entity: StoredEntity) -> None:
        now = self.store.clock.now()
        attribute = StoredAttribute("Number", str(self._random.randrange(10**6)).encode(), (), now, now)
        tenant.put(replace(entity, attributes={**entity.attributes, "churn": attribute}, modified_at_us=now))

    def _insert(self, tenant: Tenant, entity_id: str) -> None:
        now = self.store.clock.now()
        attribute = StoredAttribute("Number", b"0", (), now, now)
        tenant.put(StoredEntity(self.service_path, entity_id, "Churn", {"churn": attribute}, now, now))
        self.inserted.add(entity_id)
