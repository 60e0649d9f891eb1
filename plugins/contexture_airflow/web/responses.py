"""Responses of the page: security headers, and files of reports from the home."""

from __future__ import annotations

import re
from typing import Final

from fastapi import HTTPException, Response
from starlette.datastructures import MutableHeaders

from contexture.storage.folder import StoredFolder
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.web.asgi import Application, Message, Receive, Send

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
"""For pages of ours: what they show comes from anyone, and must never run."""

DOCUMENT_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""For reports and Data Docs: no script at all, and no part in the session of who reads them."""

_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class SecurityHeaders:
    """An application whose every answer carries these headers, unless it says otherwise itself."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, guarded)


_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "css": "text/css; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
}
# A step of a path that leads neither up nor into hidden files.
_STEP: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@.+ -]*", re.ASCII)
_LARGEST_BYTES: Final = 64 * 1024 * 1024


def report_file(store: PublicationStore, outbox: str, path: str) -> Response:
    """A file of an outbox's report, or of the Data Docs beside it; raises as `verification_file`."""
    return _file(store.outbox(outbox).report, outbox, path)


def verification_file(store: PublicationStore, verification: str, path: str) -> Response:
    """A file of a verification's report.

    Raises:
        HTTPException: 404 when there is no such file, 413 when it is too large to be shown here.
        RetriableError: the storage did not answer.
    """
    return _file(store.verifications.folder(verification), verification, path)


def _file(folder: StoredFolder, name: str, path: str) -> Response:
    kind = _TYPES.get(path.rpartition(".")[2])
    if kind is None or not all(_STEP.fullmatch(step) for step in (name, *path.split("/"))):
        raise HTTPException(404, "there is no such file")
    if not folder.exists(path):
        raise HTTPException(404, "there is no such file: retention may have deleted it")
    if folder.size(path) > _LARGEST_BYTES:
        raise HTTPException(413, "the file is too large to be shown here: open it below CONTEXTURE_HOME")
    return Response(folder.read(path), media_type=kind, headers={"Content-Security-Policy": DOCUMENT_POLICY})
