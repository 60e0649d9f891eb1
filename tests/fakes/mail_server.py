"""A mail server that speaks SMTP on 127.0.0.1 and keeps what it gets."""

from __future__ import annotations

import socketserver
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Received:
    """One mail, as the client delivered it."""

    sender: str
    to: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        found = message_from_bytes(self.content, policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found

    @property
    def body(self) -> str:
        part = self.message.get_body(("html", "plain"))
        assert part is not None
        return str(part.get_content())


@dataclass
class MailServer:
    """Runs as a context manager; `refuse` makes it answer 550 to every recipient."""

    refuse: bool = False
    mails: list[Received] = field(default_factory=list)

    def __enter__(self) -> Self:
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _converse(self, server)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])


def _converse(handler: socketserver.StreamRequestHandler, server: MailServer) -> None:
    """The commands of RFC 5321 that a client needs to deliver a mail."""

    def say(line: str) -> None:
        handler.wfile.write(f"{line}\r\n".encode())

    sender, to = "", []
    say("220 mail server of the tests")
    while line := handler.rfile.readline().decode().strip():
        command = line.split(" ")[0].split(":")[0].upper()
        if command == "QUIT":
            say("221 bye")
            return
        if command == "MAIL":
            sender, to = line.split("<")[1].split(">")[0], []
        if command == "RCPT":
            if server.refuse:
                say("550 no such mailbox")
                continue
            to.append(line.split("<")[1].split(">")[0])
        if command == "DATA":
            say("354 go on")
            server.mails.append(Received(sender, tuple(to), _data(handler)))
        say("250 fine")


def _data(handler: socketserver.StreamRequestHandler) -> bytes:
    lines = []
    while (line := handler.rfile.readline()) not in {b".\r\n", b""}:
        lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
    return b"".join(lines)
