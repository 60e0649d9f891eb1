"""Taking notifications of context brokers over HTTP, and acknowledging them once they are kept for good.

An ASGI application and what it is made of. Nothing serves it yet: a server and a command come with
`source.mode: notifications`, which publications can't ask for today.
"""

from __future__ import annotations

from contexture.reception.access import Access, Credentials, ThisMachineOnly
from contexture.reception.application import reception
from contexture.reception.target import Inbox, Target

__all__ = ["Access", "Credentials", "Inbox", "Target", "ThisMachineOnly", "reception"]
