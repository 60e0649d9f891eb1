"""What Kafka gets: the bytes of values and keys, and the headers of events."""

from __future__ import annotations

from contexture.messages import cloudevents, cygnus_lines, keys, ngsi_ld, ngsiv1, ngsiv2
from contexture.messages.errors import MessageError

__all__ = ["MessageError", "cloudevents", "cygnus_lines", "keys", "ngsi_ld", "ngsiv1", "ngsiv2"]
