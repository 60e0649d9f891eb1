"""RFC 2046: what a media type says about the bytes it stands for."""

from __future__ import annotations

import re
from typing import NamedTuple

from contexture.events.text_cache import remembered
from contexture.messages.cloudevents.record import FAMILY

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"'
_PARAMETER = rf" *; *({_WORD})=({_WORD}|{_QUOTED})"
_MEDIA_TYPE = re.compile(rf"({_WORD}/{_WORD})((?:{_PARAMETER})*) *")
_PARAMETERS = re.compile(_PARAMETER)

UTF_8 = "utf-8"
# Python knows these as text encodings too; they are none that bytes in the world have.
_NO_CHARSETS = frozenset(
    ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7", "mbcs", "oem")
)


class MediaType(NamedTuple):
    """A media type that was read.

    Attributes:
        essence: type and subtype, in lower case.
        charset: as its parameter says, in lower case; None without one.
    """

    essence: str
    charset: str | None

    @property
    def is_json(self) -> bool:
        """Whether data of it are JSON: `*/json` and `*/*+json`, whatever the case and the parameters."""
        subtype = self.essence.partition("/")[2]
        return subtype == "json" or subtype.endswith("+json")

    @property
    def is_text(self) -> bool:
        """Whether data of it are text: `text/*`, XML, and what names its charset."""
        subtype = self.essence.partition("/")[2]
        is_xml = subtype == "xml" or subtype.endswith("+xml")
        return is_xml or self.essence.startswith("text/") or self.charset is not None

    @property
    def codec(self) -> str:
        """The encoding of its text: UTF-8 unless it says another one.

        Raises:
            LookupError: Python knows no such encoding.
        """
        return codec(self.charset or UTF_8)


@remembered(512)
def media_type(text: str) -> MediaType | None:
    """A media type; None where the text is none by RFC 2046.

    >>> media_type('Text/Plain; charset="ISO-8859-1"')
    MediaType(essence='text/plain', charset='iso-8859-1')
    """
    found = _MEDIA_TYPE.fullmatch(text)
    if found is None:
        return None
    charset = None
    for name, value in _PARAMETERS.findall(found[2]):
        if name.lower() == "charset" and charset is None:
            charset = re.sub(r"\\(.)", r"\1", value.strip('"')).lower()
    return MediaType(found[1].lower(), charset)


def codec(charset: str) -> str:
    """The name under which Python can encode and decode text of a charset.

    Raises:
        LookupError: there is none.
    """
    name = charset.replace("-", "_")
    if name in _NO_CHARSETS or not name.isascii():
        raise LookupError(charset)
    # Codecs that are none of text (base64, zip) refuse this.
    "".encode(charset)
    return charset


def is_structured(content_type: str) -> bool:
    """Whether a record with this content type is in structured mode (binding, 3): the prefix decides, in any case."""
    return content_type[: len(FAMILY)].lower() == FAMILY
