"""The reception behind a real HTTP server on 127.0.0.1, in a thread of this process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

import uvicorn

from contexture.reception import NotificationTarget, reception


@contextmanager
def serving(targets: Mapping[str, NotificationTarget]) -> Iterator[str]:
    """The address of a server that runs while the block does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            reception(targets), lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)
