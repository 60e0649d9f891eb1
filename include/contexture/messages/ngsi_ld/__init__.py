"""The body format `ngsi-ld`: a normalized NGSI-LD entity, the source's own or one converted from NGSIv2."""

from __future__ import annotations

from contexture.messages.ngsi_ld.body import CORE_CONTEXT, body

__all__ = ["CORE_CONTEXT", "body"]
