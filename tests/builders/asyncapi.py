"""The public JSON Schema of AsyncAPI 3.0.0, from the npm registry: fetched once, known by its hash."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

_ADDRESS = "https://registry.npmjs.org/@asyncapi/specs/-/specs-6.11.1.tgz"
_SHA_256 = "01af8744dc33c0c7eb2e908f6a955319ee58b70ecadc9387d1aeb16c0cd28928"
_MEMBER = "package/schemas/3.0.0.json"
_KEPT = Path.home() / ".cache" / "contexture" / f"asyncapi-{_SHA_256[:12]}.json"


@cache
def asyncapi_schema() -> dict[str, Any]:
    """Returns the schema; skips the test where the registry cannot be reached."""
    if not _KEPT.exists():
        try:
            archive = httpx.get(_ADDRESS, timeout=60, follow_redirects=True).raise_for_status().content
        except httpx.HTTPError as error:
            pytest.skip(f"the schema of AsyncAPI could not be fetched from the npm registry: {error}")
        assert hashlib.sha256(archive).hexdigest() == _SHA_256
        with tarfile.open(fileobj=io.BytesIO(archive)) as package:
            member = package.extractfile(_MEMBER)
            assert member is not None
            _KEPT.parent.mkdir(parents=True, exist_ok=True)
            _KEPT.write_bytes(member.read())
    return json.loads(_KEPT.read_text())
