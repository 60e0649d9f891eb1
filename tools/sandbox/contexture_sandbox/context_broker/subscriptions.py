"""Subscriptions: only what notifications of creations, updates and deletions need, as Orion sends them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from contexture_sandbox.context_broker.answers import bad_request
from contexture_sandbox.context_broker.expressions import parse_terms, predicate
from contexture_sandbox.context_broker.rendering import Form
from contexture_sandbox.context_broker.scope import Scope
from contexture_sandbox.context_broker.selection import selector_of
from contexture_sandbox.context_broker.times import MICROSECONDS, shown
from contexture_sandbox.context_broker.writes import Change

DEFAULT_ALTERATIONS = ("entityCreate", "entityChange")
FORMATS = frozenset({"normalized", "keyValues", "simplifiedNormalized", "simplifiedKeyValues", "values"})


@dataclass(slots=True)
class Subscription:
    """One subscription and how its notifications went."""

    id: str
    scope: Scope
    subject: dict[str, object]
    notification: dict[str, object]
    more: dict[str, object]
    times_sent: int = 0
    last_sent_us: int | None = None
    last_success_us: int | None = None
    last_success_code: int | None = None
    last_failure_us: int | None = None

    @property
    def url(self) -> str:
        """Where notifications go."""
        return str(_receiver(self.notification)["url"])

    @property
    def own_headers(self) -> dict[str, str]:
        """What `httpCustom` adds to the headers of each notification."""
        return {str(name): str(value) for name, value in _mapping(_receiver(self.notification).get("headers")).items()}

    @property
    def attrs_format(self) -> str:
        """The form of the notified entity."""
        return str(self.notification.get("attrsFormat", "normalized"))

    @property
    def form(self) -> Form:
        """How the notified entity is to look: attributes in the order they were written."""
        kind = {"keyValues": "keyValues", "simplifiedKeyValues": "keyValues", "values": "values"}
        attrs = tuple(str(name) for name in _listed(self.notification.get("attrs")))
        metadata = tuple(str(name) for name in _listed(self.notification.get("metadata")))
        return Form(kind.get(self.attrs_format, "normalized"), attrs, metadata, sort=False)

    def concerns(self, change: Change) -> bool:
        """Returns whether its subscriber gets a notification of a change."""
        condition = _mapping(self.subject.get("condition"))
        wanted = set(_listed(condition.get("alterationTypes"))) or set(DEFAULT_ALTERATIONS)
        if self.more.get("status") == "inactive" or not wanted & change.kinds:
            return False
        watched = set(_listed(condition.get("attrs")))
        if watched and not watched & set(change.names) and "entityDelete" not in change.kinds:
            return False
        covers = self.scope.predicate()
        if covers is not None and not covers(change.entity.service_path):
            return False
        return self._selects(change) and self._meets(change, condition)

    def _selects(self, change: Change) -> bool:
        selectors = [selector_of(_mapping(one)) for one in _listed(self.subject.get("entities"))]
        return any(all(test(change.entity) for test in selector.predicates()) for selector in selectors)

    def _meets(self, change: Change, condition: Mapping[str, object]) -> bool:
        expression = str(_mapping(condition.get("expression")).get("q", ""))
        return not expression or all(predicate(term)(change.entity) for term in parse_terms(expression))

    def as_json(self) -> dict[str, object]:
        """The subscription as the API shows it."""
        condition = _mapping(self.subject.get("condition"))
        shown_condition = {
            "attrs": _listed(condition.get("attrs")),
            **{name: condition[name] for name in ("alterationTypes", "expression") if name in condition},
            "notifyOnMetadataChange": condition.get("notifyOnMetadataChange", True),
        }
        return {
            "id": self.id,
            **{"status": "active", **self.more},
            "subject": {"entities": _listed(self.subject.get("entities")), "condition": shown_condition},
            "notification": self._shown_notification(),
        }

    def _shown_notification(self) -> dict[str, object]:
        given = self.notification
        sent = {"timesSent": self.times_sent, **_second("lastNotification", self.last_sent_us)}
        code = {} if self.last_success_code is None else {"lastSuccessCode": self.last_success_code}
        return {
            **(sent if self.times_sent else {}),
            "attrs": _listed(given.get("attrs")),
            "onlyChangedAttrs": given.get("onlyChangedAttrs", False),
            "attrsFormat": self.attrs_format,
            **{name: given[name] for name in ("http", "httpCustom", "metadata") if name in given},
            **_second("lastFailure", self.last_failure_us),
            **_second("lastSuccess", self.last_success_us),
            **code,
            "covered": given.get("covered", False),
        }


@dataclass(slots=True)
class Subscriptions:
    """The subscriptions of all tenants."""

    _by_tenant: dict[str, dict[str, Subscription]] = field(default_factory=dict)

    def add(self, scope: Scope, given: Mapping[str, object]) -> Subscription:
        """A new subscription.

        Raises:
            Refusal: 400, it has no subject, no URL, or a form that is not spoken any more.
        """
        subject, notification = given.get("subject"), given.get("notification")
        if not isinstance(subject, dict) or not _listed(subject.get("entities")):
            raise bad_request("no subject specified")
        if not isinstance(notification, dict) or "url" not in _receiver(notification):
            raise bad_request("no notification specified")
        if notification.get("attrsFormat", "normalized") not in FORMATS:
            raise bad_request("invalid attrsFormat (accepted values: normalized, keyValues, values, simplified...)")
        more = {name: given[name] for name in ("description", "expires", "status", "throttling") if name in given}
        subscription = Subscription(secrets.token_hex(12), scope, subject, notification, more)
        self.of(scope.tenant)[subscription.id] = subscription
        return subscription

    def of(self, tenant: str) -> dict[str, Subscription]:
        """The subscriptions of one tenant by id."""
        return self._by_tenant.setdefault(tenant, {})

    def concerned(self, tenant: str, change: Change) -> list[Subscription]:
        """Returns those that get a notification of a change."""
        return [one for one in self._by_tenant.get(tenant, {}).values() if one.concerns(change)]


def _receiver(notification: Mapping[str, object]) -> Mapping[str, object]:
    """Who is notified: `http`, or `httpCustom` with headers of its own."""
    return _mapping(notification.get("http")) or _mapping(notification.get("httpCustom"))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _second(name: str, moment_us: int | None) -> dict[str, object]:
    """A time shown in whole seconds, when there is one."""
    return {} if moment_us is None else {name: shown(moment_us // MICROSECONDS * MICROSECONDS)}
