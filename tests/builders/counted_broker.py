"""A test broker with threads, which counts the requests that it works on at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qsl, urlsplit

from contexture_sandbox.context_broker import api
from contexture_sandbox.context_broker.broker import Broker, Call

SECONDS = 0.03


class CountedBroker:
    """Answers what a broker answers, each time after a while; `most` is how many requests were under way at once."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.url = ""
        self.most = 0
        self._now = 0
        self._lock = Lock()

    def answer(self, call: Call) -> tuple[int, bytes, dict[str, str]]:
        """The answer; takes some time, so that requests can be under way together."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(SECONDS)
        answer = api.answer(self.broker, call)
        with self._lock:
            self._now -= 1
        return answer.status, answer.body, dict(answer.headers)

    @contextmanager
    def serving(self) -> Iterator[CountedBroker]:
        """Serves on 127.0.0.1 while the block runs."""
        with ThreadingHTTPServer(("127.0.0.1", 0), _handler(self)) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def _handler(counted: CountedBroker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(
                "GET", tuple(address.path.strip("/").split("/")), dict(parse_qsl(address.query)), headers, b"", ""
            )
            status, body, answered = counted.answer(call)
            self.send_response(status)
            for name, value in {**answered, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a test is no log."""

    return Handler
