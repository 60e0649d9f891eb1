"""A token service of OpenID Connect on 127.0.0.1: tokens for clients with a secret, and the key to check."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

_KEY_ID = "first"


class TokenService:
    """What it answers; `asked` counts requests for tokens."""

    def __init__(self, clients: Mapping[str, str], port: int) -> None:
        self._clients = clients
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked = 0
        self.token_url = f"http://127.0.0.1:{port}/token"
        self.keys_url = f"http://127.0.0.1:{port}/keys"

    def keys(self) -> dict[str, Any]:
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": _KEY_ID, "use": "sig", "alg": "RS256"}]}

    def token(self, authorization: str) -> dict[str, Any] | None:
        self.asked += 1
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self._clients.get(client) != secret:
            return None
        now = int(time.time())
        claims = {"sub": client, "aud": "kafka", "iss": "tests", "iat": now, "exp": now + 300, "scope": "kafka"}
        signed = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KEY_ID})
        return {"access_token": signed, "token_type": "Bearer", "expires_in": 300}


@contextmanager
def token_service(clients: Mapping[str, str]) -> Iterator[TokenService]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, service.keys())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            token = service.token(self.headers.get("authorization", ""))
            self._answer(200 if token else 401, token or {"error": "invalid_client"})

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a test is no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service = TokenService(clients, server.server_port)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
