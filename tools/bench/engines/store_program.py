"""The S3 server of `cluster/`, which also notes each request: `PYTHON store_program.py HOST PORT FILE`.

Run by the Python of the server's own environment (`tools/cluster/object_store.py`), so it imports nothing of the
project. A line of FILE is a request: method, path, query, status, bytes received, bytes sent.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Noting:
    """An application in front of another that notes what goes through."""

    def __init__(self, inner: Application, file: Path) -> None:
        self._inner = inner
        self._file = file
        self._lock = threading.Lock()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterator[bytes]:
        """The inner one's answer."""
        status: list[str] = []

        def noted(line: str, *rest: Any) -> Any:
            status.append(line.split(" ", 1)[0])
            return start_response(line, *rest)

        received = int(environ.get("CONTENT_LENGTH") or environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or 0)
        sent = 0
        for piece in self._inner(environ, noted):
            sent += len(piece)
            yield piece
        request = [environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""), *status[-1:]]
        with self._lock, self._file.open("a") as file:
            file.write(json.dumps([*request, received, sent]) + "\n")


def main(host: str, port: int, file: Path) -> None:
    """Serves until it is ended."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    application = Noting(DomainDispatcherApplication(create_backend_app), file)
    run_simple(host, port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
