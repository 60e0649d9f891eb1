"""The NGSI-LD face of the test broker: one API, three brokers' habits."""

from __future__ import annotations

from contexture_sandbox.context_broker.linked_data.face import LinkedDataFace
from contexture_sandbox.context_broker.linked_data.flavours import FLAVOURS, Flavour

__all__ = ["FLAVOURS", "Flavour", "LinkedDataFace"]
