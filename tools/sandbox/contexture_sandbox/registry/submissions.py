"""What a submission does to the registry, by its action."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import orjson

from contexture.sources.sdmx import Artefact, Format, StructureMessageError, split
from contexture.sources.sdmx.urn import is_registration
from contexture_sandbox.registry.messages import FORMATS, container_of, is_utf8
from contexture_sandbox.registry.model import Action, Structure, Transaction
from contexture_sandbox.registry.refusals import Refusal, bad_request
from contexture_sandbox.registry.selection import resolved
from contexture_sandbox.registry.store import Changes, Store
from contexture_sandbox.registry.stubs import artefact_element, serialised, whole_again

Renderings = dict[Format, Artefact]


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted message, or the same structures in several formats.

    Attributes:
        messages: structure messages; the first one is kept with the transaction.
        action: what is to be done.
        user: who asks.
        media_type: what the sender says of them; a hint.
    """

    messages: tuple[bytes, ...]
    action: Action = "Replace"
    user: str = "root"
    media_type: str = "application/xml"


def submit(store: Store, submission: Submission, *, strict: bool = False) -> Transaction:
    """Do what is asked as one transaction, or nothing of it.

    Args:
        store: what is changed.
        submission: what is asked.
        strict: refuse what would leave a reference to nothing.

    Raises:
        Refusal: 400, a message can't be read or stored, or the action can't be done; 404, there is nothing to delete.
    """
    given = _read(submission)
    with store.lock:
        there = store.current()
        if submission.action == "Delete":
            stored, deleted = {}, _deletable(given, there)
        elif submission.action == "FullReplace":
            # Structures and data registrations are submitted apart.
            kept = {urn for urn in there if is_registration(urn) not in set(map(is_registration, given))}
            stored, deleted = given, tuple(sorted(there.keys() - given.keys() - kept))
        else:
            stored, deleted = _put(submission.action, given, there), ()
        if strict:
            _check_references(there, stored, deleted)
        media_type = next(iter(next(iter(given.values())))).media_type
        return store.commit(
            Changes(submission.action, stored, deleted, submission.user, submission.messages[0], media_type)
        )


def delete(store: Store, urns: Iterable[str], user: str = "root", *, strict: bool = False) -> Transaction:
    """Delete structures as one transaction.

    Raises:
        Refusal: 404, one of them isn't there; 400, strict, and something refers to one of them.
    """
    with store.lock:
        there = store.current()
        deleted = _deletable(dict.fromkeys(urns), there)
        if strict:
            _check_references(there, {}, deleted)
        return store.commit(Changes("Delete", deleted=deleted, user=user))


def _read(submission: Submission) -> dict[str, Renderings]:
    given: dict[str, Renderings] = {}
    for message in submission.messages:
        for artefact in _artefacts(message, submission.media_type):
            renderings = given.setdefault(str(artefact.urn), {})
            if artefact.format in renderings:
                raise bad_request(f"{artefact.urn} is there twice")
            renderings[artefact.format] = artefact
    if not given:
        raise bad_request("the message holds no structures")
    return given


def _artefacts(message: bytes, media_type: str) -> list[Artefact]:
    try:
        artefacts = list(split(BytesIO(message), media_type))
    except StructureMessageError as error:
        raise bad_request(f"the message can't be read: {error}") from None
    for artefact in artefacts:
        _check(artefact)
    return artefacts


def _check(artefact: Artefact) -> None:
    if artefact.urn is None:
        raise bad_request(f"a {artefact.kind} has no identity")
    if artefact.format not in FORMATS or container_of(artefact) is None or not is_utf8(artefact):
        raise bad_request(f"the sandbox can't keep {artefact.format} in this form; send UTF-8 with containers")


def _put(action: Action, given: Mapping[str, Renderings], there: Mapping[str, Structure]) -> dict[str, Renderings]:
    if action == "Replace":
        return dict(given)
    return {urn: _joined(action, each, there[urn]) if urn in there else each for urn, each in given.items()}


def _joined(action: Action, given: Renderings, there: Structure) -> Renderings:
    if action == "Append" and not has_items(there.first):
        raise bad_request(f"{there.urn} exists already; Append adds only what is new")
    if not has_items(there.first):
        return given
    if given.keys() != there.renderings.keys():
        raise bad_request(f"{there.urn} is kept in another format; the sandbox merges within one")
    return {
        format_: merged(there.renderings[format_], artefact, replacing=action == "Merge")
        for format_, artefact in given.items()
    }


def _check_references(
    there: Mapping[str, Structure], stored: Mapping[str, Renderings], deleted: tuple[str, ...]
) -> None:
    remaining = (there.keys() | stored.keys()) - set(deleted)
    concerned = remaining if deleted else stored.keys()
    for urn in sorted(concerned):
        artefact = next(iter(stored[urn].values())) if urn in stored else there[urn].first
        for reference in artefact.references:
            if resolved(reference, remaining) is None:
                raise bad_request(f"{urn} refers to {reference}, which would not be there")


def _deletable(given: Mapping[str, object], there: Mapping[str, Structure]) -> tuple[str, ...]:
    missing = [urn for urn in given if urn not in there]
    if missing:
        raise Refusal(404, 100, f"there is no {missing[0]}")
    return tuple(given)


_NO_ITEMS = frozenset({"links", "annotations"})


def has_items(artefact: Artefact) -> bool:
    """Whether it is an item scheme: only those are merged, all else is replaced."""
    return artefact.kind.endswith("Scheme") or artefact.kind in {"Codelist", "ValueList"}


def merged(there: Artefact, given: Artefact, *, replacing: bool) -> Artefact:
    """The artefact that is there with the items of the one that is given.

    Args:
        there: what is stored.
        given: of the same URN and format, with some items.
        replacing: put an item in the place of one with its id; otherwise that is refused.

    Raises:
        Refusal: 400, an item is there already.
    """
    content = _merged_json(there, given, replacing) if there.format.is_json else _merged_xml(there, given, replacing)
    return whole_again(there, content)


def _merged_xml(there: Artefact, given: Artefact, replacing: bool) -> bytes:
    element = artefact_element(there.message())
    own = {item.get("id"): item for item in _items(element)}
    for item in _items(artefact_element(given.message())):
        identifier = item.get("id")
        item.tail = None
        if identifier not in own:
            element.append(item)
            continue
        _refuse_known(identifier, replacing)
        element.replace(own[identifier], item)
    return serialised(element)


def _items(element: Any) -> list[Any]:
    return [child for child in element if isinstance(child.tag, str) and child.get("id") is not None]


def _merged_json(there: Artefact, given: Artefact, replacing: bool) -> bytes:
    members: dict[str, Any] = orjson.loads(there.content)
    for name, items in orjson.loads(given.content).items():
        if isinstance(items, list) and name not in _NO_ITEMS and all("id" in item for item in items):
            members[name] = _joined_items(members.get(name, []), items, replacing)
    return orjson.dumps(members)


def _joined_items(own: list[dict[str, Any]], given: list[dict[str, Any]], replacing: bool) -> list[dict[str, Any]]:
    joined = {item["id"]: item for item in own}
    for item in given:
        if item["id"] in joined:
            _refuse_known(item["id"], replacing)
        joined[item["id"]] = item
    return list(joined.values())


def _refuse_known(identifier: str, replacing: bool) -> None:
    if not replacing:
        raise bad_request(f"the item {identifier[:80]} exists already; Append adds only what is new")
