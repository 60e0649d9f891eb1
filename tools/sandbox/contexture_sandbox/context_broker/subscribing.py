"""`/v2/subscriptions`."""

from __future__ import annotations

from contexture_sandbox.context_broker.answers import not_found
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.parameters import parse_parameters
from contexture_sandbox.context_broker.queries import COUNT_HEADER
from contexture_sandbox.context_broker.subscriptions import Subscription
from contexture_sandbox.context_broker.syntax import parse_json_object
from contexture_sandbox.http_server import Answer, json_answer


def list_subscriptions(broker: Broker, call: Call) -> Answer:
    """`GET /v2/subscriptions`: the health probe, for it fails when the database is gone."""
    parameters = parse_parameters(call.parameters)
    scope = call.scope
    path = call.headers.get("fiware-servicepath", "/#")
    where = (
        f"collection: orion-{scope.tenant}.csubs - count_documents: {{ &quot;servicePath&quot; : &quot;{path}&quot; }}"
    )
    broker.refuse_without_database(where)
    found = [one.as_json() for one in broker.subscriptions.of(scope.tenant).values()]
    page = found[parameters.offset : parameters.offset + parameters.limit]
    return json_answer(page, headers={COUNT_HEADER: str(len(found))} if "count" in parameters.options else None)


def create_subscription(broker: Broker, call: Call) -> Answer:
    """`POST /v2/subscriptions`."""
    broker.refuse_without_database("collection: csubs - insert")
    subscription = broker.subscriptions.add(call.scope, parse_json_object(call.body))
    return Answer(201, b"", {"location": f"/v2/subscriptions/{subscription.id}"})


def get_subscription(broker: Broker, call: Call) -> Answer:
    """`GET /v2/subscriptions/{id}`."""
    return json_answer(_one(broker, call).as_json())


def delete_subscription(broker: Broker, call: Call) -> Answer:
    """`DELETE /v2/subscriptions/{id}`."""
    broker.subscriptions.of(call.scope.tenant).pop(_one(broker, call).id)
    return Answer(204)


def update_subscription(broker: Broker, call: Call) -> Answer:
    """`PATCH /v2/subscriptions/{id}`."""
    subscription = _one(broker, call)
    for name, value in parse_json_object(call.body).items():
        if name in {"subject", "notification"} and isinstance(value, dict):
            setattr(subscription, name, value)
        else:
            subscription.more[name] = value
    return Answer(204)


def _one(broker: Broker, call: Call) -> Subscription:
    broker.refuse_without_database("collection: csubs - find_one")
    subscription = broker.subscriptions.of(call.scope.tenant).get(call.segments[2])
    if subscription is None:
        raise not_found("subscription")
    return subscription
