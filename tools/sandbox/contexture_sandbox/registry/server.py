"""The registry as an HTTP server of this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from starlette.requests import Request

from contexture_sandbox.faults import Fault
from contexture_sandbox.http_server import Answer, Application, HttpServer, RecordedRequest
from contexture_sandbox.registry import api, control
from contexture_sandbox.registry.faults import RegistryFaults
from contexture_sandbox.registry.model import Action, Face, Transaction
from contexture_sandbox.registry.refusals import INTERNAL, Refusal
from contexture_sandbox.registry.registry import PRODUCT_VERSION, Call, Registry
from contexture_sandbox.registry.store import Store
from contexture_sandbox.registry.submissions import Submission, delete, submit

PAGE = b"<html><body><h1>Not here</h1></body></html>"


class RegistryApplication(Application[Registry, Call]):
    """Serves a registry with the interface of its face, and `/sandbox`."""

    def call(self, request: Request, segments: tuple[str, ...], body: bytes, faults: Sequence[Fault]) -> Call:
        """Decodes a request; notes which faults take content away from its response."""
        kinds = {fault.kind for fault in faults}
        return Call(
            method=request.method,
            segments=segments,
            parameters=dict(request.query_params.items()),
            headers=dict(request.headers.items()),
            body=body,
            base=str(request.base_url).rstrip("/"),
            empty="empty" in kinds,
            half="half" in kinds,
        )

    def control(self, call: Call) -> Answer:
        """Returns the response to a request below `/sandbox`."""
        return control.answer(self._state, call)

    def answer(self, call: Call) -> Answer:
        """Returns the response of the registry."""
        return api.answer(self._state, call)

    def failure(self, fault: Fault) -> Answer | None:
        """Returns the error of a `status` fault, or the page of a web server without its registry."""
        if fault.kind == "status":
            refused = Refusal(fault.status, INTERNAL, "this failure was asked for").answer()
            return Answer(refused.status, refused.body, {**refused.headers, **fault.headers})
        if fault.kind == "page":
            return Answer(fault.status, PAGE, {"content-type": "text/html", **fault.headers})
        return None


class TestRegistry(HttpServer):
    """A structure registry for tests, on 127.0.0.1, in a thread of this process.

    Use as a context manager, or call `start` and `stop`.

        with TestRegistry() as registry:
            registry.submit(message)
            httpx.get(registry.url + "/sdmx/v2/structure/*/*/*/*")

    Args:
        face: `fmr`, or `plain` for an SDMX-REST service without log, history, submissions and conditional requests.
        port: 0 takes a free one.
        version: of the product, as the face of an FMR reports it; below 12 it ignores `asOf`, below 11 it has
            no SDMX-REST 2.
        credentials: passwords by user; root with `password` if none.
        checks_references: refuse what would leave a reference to nothing, as an FMR does.

    Attributes:
        store: structures, transactions, and the `clock` that can be frozen.
        faults: what is to go wrong (`fail`, `page`, `empty`, `half`, `truncate`, `drop`, `delay`).
    """

    def __init__(
        self,
        face: Face = "fmr",
        *,
        port: int = 0,
        version: str = PRODUCT_VERSION,
        credentials: Mapping[str, str] | None = None,
        checks_references: bool = False,
    ) -> None:
        self._registry = Registry(face, version=version, credentials=credentials, checks_references=checks_references)
        super().__init__("test registry", partial(RegistryApplication, self._registry), port)

    @property
    def store(self) -> Store:
        """What the registry holds."""
        return self._registry.store

    @property
    def faults(self) -> RegistryFaults:
        """What is to go wrong."""
        return self._registry.faults

    @property
    def requests(self) -> list[RecordedRequest]:
        """The last 10,000 requests, oldest first."""
        return list(self._registry.requests)

    def submit(self, *messages: bytes, action: Action = "Replace", user: str = "root") -> Transaction:
        """One transaction; several messages are the same structures in several formats.

        Raises:
            Refusal: it can't be done, see `submissions`.
        """
        return submit(self.store, Submission(messages, action, user), strict=self._registry.checks_references)

    def delete(self, urns: Iterable[str], *, user: str = "root") -> Transaction:
        """One transaction that deletes.

        Raises:
            Refusal: one of them isn't there.
        """
        return delete(self.store, urns, user=user, strict=self._registry.checks_references)

    def feed_registrations(self, *, listed: bool) -> None:
        """Let the feed list data registrations like structures, or only the search of transactions."""
        self._registry.feeds_registrations = listed

    def restrict(self, urns: Iterable[str]) -> None:
        """Hide these structures from who has no credentials; those that were hidden before are public again."""
        self._registry.restricted = set(urns)
