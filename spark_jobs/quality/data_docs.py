"""Great Expectations' own documents: made safe to open, and put beside the report."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from contexture.outbox.storage import Storage

# What comes from data; the rest of a stored result is written by the publication's author and by us.
_FROM_DATA = ("result", "exception_info")

# Fonts and the animations of a guided tour: 4 MB for each run, and the documents read well without.
_LEFT_OUT = (".gif", ".otf")


def escape_results(validations: Path) -> None:
    """Escapes the data in stored results, for Data Docs put it into their pages as it is (measured with 1.24.1).

    An entity whose type is `<script>` would otherwise run in the browser of whoever looks at why it was refused.
    """
    for file in validations.rglob("*.json"):
        document = json.loads(file.read_bytes())
        for result in document.get("results", []):
            result.update({key: _escaped(result[key]) for key in _FROM_DATA if key in result})
        file.write_text(json.dumps(document))


def copy(site: Path, storage: Storage, target: str) -> None:
    """Copies the finished site to a folder of the storage."""
    for file in site.rglob("*"):
        if file.is_file() and file.suffix not in _LEFT_OUT:
            storage.write(f"{target}/{file.relative_to(site).as_posix()}", file.read_bytes())


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return {key: _escaped(each) for key, each in value.items()} if isinstance(value, dict) else value
