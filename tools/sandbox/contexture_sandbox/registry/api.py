"""Which part of the registry answers a request: the face of an FMR, or a plain SDMX-REST service."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from contexture_sandbox.http_server import Answer, json_answer
from contexture_sandbox.registry import log, registrations, structures
from contexture_sandbox.registry.credentials import unauthorised, user_of
from contexture_sandbox.registry.model import ACTIONS, Action, Transaction
from contexture_sandbox.registry.queries import version_1, version_2
from contexture_sandbox.registry.refusals import Refusal, bad_request, no_results
from contexture_sandbox.registry.registry import Call, Registry
from contexture_sandbox.registry.selection import selected
from contexture_sandbox.registry.submissions import Submission, delete, submit

VERSION_1_OF_FMR = ("ws", "public", "sdmxapi", "rest")
SUBMISSION = ("ws", "secure", "sdmxapi", "rest")
_RELEASE_DATE = "2026-09-19"
_RESPONSE = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<mes:RegistryInterface xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" '
    'xmlns:reg="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/registry"><mes:Header><mes:ID>TX{id}</mes:ID>'
    "<mes:Test>false</mes:Test></mes:Header><mes:SubmitStructureResponse>{results}</mes:SubmitStructureResponse>"
    "</mes:RegistryInterface>"
)
_RESULT = (
    '<reg:SubmissionResult><reg:SubmittedStructure action="{action}"><reg:MaintainableObject><URN>{urn}</URN>'
    '</reg:MaintainableObject></reg:SubmittedStructure><reg:StatusMessage status="Success"/></reg:SubmissionResult>'
)


def answer(registry: Registry, call: Call) -> Answer:
    """The answer to a request; refusals are answers too."""
    try:
        return _fmr(registry, call) if registry.face == "fmr" else _plain(registry, call)
    except Refusal as refusal:
        return refusal.answer()


def _plain(registry: Registry, call: Call) -> Answer:
    if call.method != "GET" or call.segments[0] != "rest":
        raise no_results()
    rest = call.segments[1:]
    if rest[:2] == ("v2", "structure"):
        return structures.answer(registry, version_2(rest[2:], call.parameters), call)
    if rest[:2] == ("v2", "registration"):
        return registrations.answer(registry, rest[2:], call)
    rest = rest[1:] if rest[:1] == ("v1",) else rest
    return _version_1(registry, rest, call)


def _fmr(registry: Registry, call: Call) -> Answer:
    if call.segments[:4] == SUBMISSION and call.method in {"POST", "DELETE"}:
        return _maintenance(registry, call)
    if call.method != "GET":
        raise Refusal(405, 140, "only GET, and submissions")
    if call.segments[:3] == ("sdmx", "v2", "structure"):
        if not registry.has_version_2:
            # Nothing of the application is there: its server answers.
            return Answer(404, b"<html><body>404</body></html>", {"content-type": "text/html"})
        return structures.answer(registry, version_2(call.segments[3:], call.parameters), call)
    if call.segments[:3] == ("sdmx", "v2", "registration") and registry.has_version_2:
        return registrations.answer(registry, call.segments[3:], call)
    if call.segments[:4] == VERSION_1_OF_FMR:
        return _version_1(registry, call.segments[4:], call)
    return _service(registry, call)


def _version_1(registry: Registry, rest: Sequence[str], call: Call) -> Answer:
    if not rest:
        raise no_results()
    return structures.answer(registry, version_1(rest, call.parameters), call)


def _service(registry: Registry, call: Call) -> Answer:
    match call.segments:
        case ("ws", "fusion", "info", "product"):
            return json_answer({"Version": registry.version, "ReleaseDate": _RELEASE_DATE})
        case ("ws", "registry", "tx", "searchTransactions"):
            return log.search(registry.store, call)
        case ("ws", "registry", "tx", "getAllUrns"):
            return log.all_urns(registry.store, call)
        case ("ws", "registry", "tx", "history"):
            return log.history(registry.store, call)
        case ("ws", "registry", "tx", "submission", number):
            return log.submitted(registry.store, number)
        case ("rss.xml",) | ("FusionRegistry", "rss.xml"):
            return log.feed(registry.store, call, registrations=registry.feeds_registrations)
    raise no_results()


def _maintenance(registry: Registry, call: Call) -> Answer:
    user = user_of(registry, call)
    if user is None:
        raise unauthorised()
    if call.method == "DELETE":
        query = version_1(call.segments[4:] or ("",), call.parameters)
        urns = [structure.urn for structure in selected(query, registry.store.current())]
        if not urns:
            raise no_results()
        return _done(delete(registry.store, urns, user, strict=registry.checks_references))
    media_type = call.headers.get("content-type", "application/xml")
    submission = Submission((call.body,), _action(call), user, media_type)
    return _done(submit(registry.store, submission, strict=registry.checks_references))


def _action(call: Call) -> Action:
    asked = call.headers.get("action", "Replace")
    for action in ACTIONS:
        if action.lower() == asked.lower():
            return action
    raise bad_request("Action is not one of " + ", ".join(ACTIONS))


def _done(transaction: Transaction) -> Answer:
    results = "".join(_RESULT.format(action=transaction.action, urn=escape(urn)) for urn in transaction.urns)
    body = _RESPONSE.format(id=transaction.id, results=results).encode()
    return Answer(200, body, {"content-type": "application/xml"})
