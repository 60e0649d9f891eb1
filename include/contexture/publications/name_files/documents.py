"""The files of grouping rules and name mappings: JSON with comment lines, as Cygnus reads them."""

from __future__ import annotations

import json
from pathlib import Path

from contexture.errors import ConfigurationError

MAXIMUM_BYTES = 1024 * 1024


def parse(text: str, member: str) -> list[object]:
    """The list that the document holds below `member`; empty lines and lines that begin with `#` don't count.

    Raises:
        ConfigurationError: it is no JSON object with such a list.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    try:
        document = json.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the file is no JSON: {error}", next_step="correct it") from None
    listed = document.get(member) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ConfigurationError(
            f"the file holds no list {member!r}", next_step=f'write {{"{member}": [...]}}, as for Cygnus'
        )
    return listed


def canonical(text: str, member: str) -> str:
    """The document without comments and in one form, so that only its contents count."""
    return json.dumps({member: parse(text, member)}, ensure_ascii=False, separators=(",", ":"))


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        ConfigurationError: it can't be read.
    """
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ConfigurationError(f"{path.name} is larger than 1 MiB", next_step="split the publication")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(
            f"{path.name} can't be read: {reason}", next_step="write a path from this file's folder"
        ) from None
