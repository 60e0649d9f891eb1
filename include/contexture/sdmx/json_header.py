"""The header of a message in JSON: what it says, and finding it where it follows the structures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import orjson

from contexture.sdmx.encodings import ByteStream, Utf8Source
from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.json_text import JsonText
from contexture.sdmx.limits import Limits


@dataclass(frozen=True, slots=True)
class Header:
    """What describes the message.

    Attributes:
        meta: bytes of the member of this name.
        json_schema: bytes of the member `$schema`.
    """

    meta: bytes = b""
    json_schema: bytes = b""

    def having(self, key: str, value: bytes) -> Header:
        """With one of the two members."""
        return replace(self, meta=value) if key == "meta" else replace(self, json_schema=value)

    def before(self, opening: bytes) -> bytes:
        """A message up to its first structure: the header's members, then `opening`."""
        members = ((b'"$schema":', self.json_schema), (b'"meta":', self.meta))
        return b"{" + b"".join(key + value + b"," for key, value in members if value) + opening

    @property
    def schema(self) -> str | None:
        """The schema that the message names.

        Raises:
            StructureMessageError: the header is no JSON.
        """
        try:
            meta = orjson.loads(self.meta) if self.meta else {}
            named = (meta.get("schema") if isinstance(meta, dict) else None, orjson.loads(self.json_schema or b"null"))
        except orjson.JSONDecodeError:
            raise StructureMessageError("the header is no valid JSON", next_step="read the message again") from None
        return next((text for text in named if isinstance(text, str)), None)


class LateHeader:
    """Looks for a header behind the structures, in a stream that can be read twice.

    Attributes:
        unreachable: whether there may be one, and the stream can't be read twice.
    """

    def __init__(self, stream: ByteStream, limits: Limits) -> None:
        self._stream: Any = stream
        self._limits = limits
        self._start = _position(stream)
        self.unreachable = False

    def find(self) -> Header | None:
        """The header, wherever it stands; None where there is none."""
        if self._start is None:
            self.unreachable = True
            return None
        back = self._stream.tell()
        self._stream.seek(self._start)
        try:
            return self._read()
        finally:
            self._stream.seek(back)

    def _read(self) -> Header | None:
        header = Header()
        text = JsonText(Utf8Source(self._stream, self._limits), self._limits)
        for key in text.members():
            if key in {"meta", "$schema"}:
                header = header.having(key, text.value())
            else:
                text.skip()
        return header if header.meta or header.json_schema else None


def _position(stream: Any) -> int | None:
    """Where the stream is, if it can be set back to there."""
    try:
        return int(stream.tell()) if stream.seekable() else None
    except (AttributeError, OSError):
        return None
