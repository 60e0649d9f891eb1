"""Models: what entities of a type should look like, as JSON Schemas that the user keeps. No network, ever."""

from __future__ import annotations

from contexture.ngsi.models.keyvalues import key_values
from contexture.ngsi.models.schemas import ModelSchemas, Problem, compiled

__all__ = ["ModelSchemas", "Problem", "compiled", "key_values"]
