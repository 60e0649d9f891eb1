"""NGSI: entities, the rules they are held to, and the broker that holds them."""

from __future__ import annotations

from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity

__all__ = ["EntityError", "ParsedEntity", "parse_entity"]
