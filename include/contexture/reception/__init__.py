"""Reception: notifications of context brokers over HTTP, acknowledged once they are stored durably.

An ASGI application and what it is made of, and a server for it alone (`contexture notify serve`). Airflow's API server
serves the same application through the plugin.
"""

from __future__ import annotations

from contexture.reception.application import reception
from contexture.reception.targets import Access, Credentials, NotificationTarget, ThisMachineOnly

__all__ = ["Access", "Credentials", "NotificationTarget", "ThisMachineOnly", "reception"]
