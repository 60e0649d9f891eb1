"""Publications of structures, as a file has them."""

from __future__ import annotations

from typing import Any
from unittest import mock

from contexture.publications import Publication


def structures(**sections: Any) -> Publication:
    """A publication of all that a registry holds to one topic; `sections` replace, or complete `source`."""
    source = {"kind": "sdmx", "connection": "registry", **sections.pop("source", {})}
    settings = {"name": "structures", "source": source, "topics": {"topics": ["structures"]}, **sections}
    with mock.patch("contexture.publications.publication.not_yet_supported", return_value=()):
        return Publication.model_validate(settings)
