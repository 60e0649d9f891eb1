"""Where a context broker is and what it wants to see before it answers. The headers may be secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contexture.ngsi.http_connection import HttpConnection


@dataclass(frozen=True, slots=True)
class BrokerConnection(HttpConnection):
    """How to reach a context broker: what stands before `/v2`, or before `/ngsi-ld`.

    A request that takes longer than `timeout_seconds` in all is asked for in smaller pieces.
    """

    WHO: ClassVar[str] = "the context broker"
