"""Publications of structures, as a file has them."""

from __future__ import annotations

from typing import Any

from contexture.publications import Publication


def structures(**sections: Any) -> Publication:
    """A publication of all that a registry holds to one topic; `sections` replace, or complete `source`."""
    return Publication.model_validate(structure_settings(**sections))


def structure_settings(**sections: Any) -> dict[str, Any]:
    """The same as the value of a file."""
    source = {"kind": "sdmx", "connection": "registry", **sections.pop("source", {})}
    return {"name": "structures", "source": source, "topics": {"topics": ["structures"]}, **sections}
