"""What Kafka gets: the bytes of values and keys."""

from __future__ import annotations

from contexture.messages import cygnus_lines, keys, ngsi_ld, ngsiv1, ngsiv2
from contexture.messages.errors import MessageError

__all__ = ["MessageError", "cygnus_lines", "keys", "ngsi_ld", "ngsiv1", "ngsiv2"]
