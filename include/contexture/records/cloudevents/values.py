"""The type system of CloudEvents: which values an attribute may have, and how each is written.

The patterns have one way to read any text, so that a hostile one costs no more than its length.
"""

from __future__ import annotations

import re
from base64 import b64encode
from calendar import isleap
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import orjson

from contexture.events.text_cache import cache_by_text
from contexture.records.cloudevents.record import FAMILY, SPEC_VERSION, refused

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
    """A media type: type and subtype, and the parameter `charset` if it has one, in lower case."""

    essence: str
    charset: str | None

    @property
    def is_json(self) -> bool:
        """Returns whether data of it are JSON: `*/json` and `*/*+json`, whatever the case and the parameters."""
        subtype = self.essence.partition("/")[2]
        return subtype == "json" or subtype.endswith("+json")

    @property
    def is_text(self) -> bool:
        """Returns whether data of it are text: `text/*`, XML, and types with a charset."""
        subtype = self.essence.partition("/")[2]
        is_xml = subtype == "xml" or subtype.endswith("+xml")
        return is_xml or self.essence.startswith("text/") or self.charset is not None

    @property
    def codec(self) -> str:
        """Returns the encoding of its text: UTF-8 unless it names another one.

        Raises:
            LookupError: Python knows no such encoding.
        """
        return codec(self.charset or UTF_8)


@cache_by_text(512)
def media_type(text: str) -> MediaType | None:
    """Returns a media type; None where the text is none by RFC 2046.

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
    """Returns the name under which Python can encode and decode text of a charset.

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
    """Returns whether this content type is of structured mode (binding, 3): the prefix decides, in any case."""
    return content_type[: len(FAMILY)].lower() == FAMILY


_RFC_3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_USUAL = re.compile(r"\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)
_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST_MINUTE = 23 * 60 + 59
_DAY = 24 * 60


def is_timestamp(text: str) -> bool:
    """Returns whether a text is an RFC 3339 date and time with its offset, also a leap second where UTC has them.

    >>> is_timestamp("2018-04-05T17:31:00Z"), is_timestamp("2018-04-05T17:31:00")
    (True, False)
    """
    return _is_usual(text) or _is_unusual(text)


def _is_usual(text: str) -> bool:
    """Checks nearly all times, in a quarter of the time. Python knows neither leap seconds nor the year 0."""
    try:
        return _USUAL.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_unusual(text: str) -> bool:
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    offset = _offset_minutes(found[7], found[8], found[9])
    if offset is None or not 1 <= month <= 12 or hour > 23 or minute > 59:
        return False
    if not 1 <= day <= _DAYS[month] or (month == 2 and day == 29 and not isleap(year)):
        return False
    return second < 60 or (second == 60 and (hour * 60 + minute - offset) % _DAY == _LAST_MINUTE)


def timestamp(moment: datetime) -> str | None:
    """Returns a moment as RFC 3339 writes it, UTC as `Z`; None where its offset is not one of whole minutes."""
    if moment.tzinfo is UTC:
        # The same text as below, in a third of the time.
        return utc_bytes(moment).decode()
    offset = moment.utcoffset()
    if offset is None or offset.total_seconds() % 60:
        return None
    text = moment.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def utc_bytes(moment: datetime) -> bytes:
    """Returns a moment whose zone is `datetime.UTC`, as RFC 3339 writes it."""
    return orjson.dumps(moment, None, orjson.OPT_UTC_Z)[1:-1]


def _offset_minutes(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 23 or int(minutes) > 59:
        return None
    offset = int(hours) * 60 + int(minutes)
    return -offset if sign == "-" else offset


_ESCAPED = r"%[0-9A-Fa-f]{2}"
_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;="
_PATH = rf"(?:[{_PLAIN}:@/]|{_ESCAPED})*"
_QUERY = rf"(?:[{_PLAIN}:@/?]|{_ESCAPED})*"
_HOST = rf"(?:\[[A-Fa-f0-9vV{_PLAIN}:]+\]|(?:[{_PLAIN}]|{_ESCAPED})*)"
_AUTHORITY = rf"(?:(?:[{_PLAIN}:]|{_ESCAPED})*@)?{_HOST}(?::[0-9]*)?"
# A path behind an authority is empty or begins with a slash; without one it must not look like one.
_HIERARCHY = rf"(?://{_AUTHORITY}(?:/{_PATH})?|(?!//){_PATH})"
_SCHEME = r"[A-Za-z][A-Za-z0-9+\-.]*:"
_NO_SCHEME = r"(?![^/?#]*:)"

_ABSOLUTE = re.compile(rf"{_SCHEME}{_HIERARCHY}(?:\?{_QUERY})?")
_REFERENCE = re.compile(rf"(?:{_SCHEME}|{_NO_SCHEME}){_HIERARCHY}(?:\?{_QUERY})?(?:#{_QUERY})?")


def is_uri_reference(text: str) -> bool:
    """Returns whether a text is a URI reference (4.1), absolute or relative; the empty one is."""
    return _REFERENCE.fullmatch(text) is not None


def is_absolute_uri(text: str) -> bool:
    """Returns whether a text is an absolute URI (4.3): it has a scheme, and no fragment."""
    return _ABSOLUTE.fullmatch(text) is not None


Text = Callable[[object], str]

_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
_LARGEST, _SMALLEST = 2**31 - 1, -(2**31)
_CACHED = 1024


def text_of(name: str, value: object) -> str:
    """Returns the canonical text of an extension attribute (core, 3.1).

    Raises:
        CloudEventError: the value has none of the types, or is outside of its type.
    """
    if type(value) is str:
        return _checked(name, value)
    if value is True or value is False:
        return "true" if value else "false"
    json = json_of(name, value)
    return json if isinstance(json, str) else str(json)


def json_of(name: str, value: object) -> str | int:
    """Returns the JSON value of an extension attribute (JSON format, 2.2): booleans and integers, else a text.

    Raises:
        CloudEventError: as `text_of`.
    """
    if isinstance(value, str):
        return _checked(name, str(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not _SMALLEST <= value <= _LARGEST:
            raise refused(name, "is an integer of more than 32 bits", next_step="send it as text")
        return int(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return _moment(name, value)
    raise refused(name, f"is a {type(value).__name__}, which no attribute can be", next_step="send it as text")


def _checked(name: str, text: str) -> str:
    # For ASCII `isprintable` is exactly this rule; beyond, it refuses characters that are legal.
    if not (text.isascii() and text.isprintable()) and _FORBIDDEN.search(text):
        raise refused(name, "holds a control character, an incomplete character, or a noncharacter")
    return text


def _string(name: str) -> Text:
    def check(value: object) -> str:
        if not isinstance(value, str):
            raise refused(name, f"is a {type(value).__name__}, not a text")
        if not value:
            raise refused(name, "is empty")
        return _checked(name, value)

    return check


def _matching(name: str, is_right: Callable[[str], bool], problem: str) -> Text:
    string = _string(name)

    # Sources and media types repeat from event to event.
    @cache_by_text(_CACHED)
    def cached(text: str) -> str:
        if not is_right(text):
            raise refused(name, problem)
        return text

    return lambda value: cached(string(value))


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return _moment("time", value)
    text = _string("time")(value)
    if not is_timestamp(text):
        raise refused("time", "is no RFC 3339 time with an offset")
    return text


def _moment(name: str, moment: datetime) -> str:
    text = timestamp(moment)
    if text is None:
        raise refused(
            name, "is a time without an offset of whole minutes", next_step="give it a time zone, such as UTC"
        )
    return text


def _version(value: object) -> str:
    if value != SPEC_VERSION or not isinstance(value, str):
        raise refused("specversion", f"is not {SPEC_VERSION!r}", next_step=f"write {SPEC_VERSION!r}, as text")
    return value


CORE: Final[dict[str, Text]] = {
    "specversion": _version,
    "id": _string("id"),
    "source": _matching("source", is_uri_reference, "is not a URI reference (RFC 3986)"),
    "type": _string("type"),
    "datacontenttype": _matching(
        "datacontenttype", lambda text: media_type(text) is not None, "is not a media type (RFC 2046)"
    ),
    "dataschema": _matching("dataschema", is_absolute_uri, "is not an absolute URI (RFC 3986, 4.3)"),
    "subject": _string("subject"),
    "time": _time,
    "partitionkey": _string("partitionkey"),
}
"""The attributes with rules of their own: those of the specification, and the extension `partitionkey`."""

PLAIN: Final = frozenset(("id", "type", "subject", "partitionkey"))
"""Those of them that are texts that are not empty, and nothing more."""


def content_type_of(text: str) -> str:
    """Returns the header `content-type` of an event in binary mode.

    Raises:
        CloudEventError: readers would take the record for one in structured mode.
    """
    if is_structured(text):
        raise refused(
            "datacontenttype",
            "begins as a structured record's content type does",
            next_step="send this event in structured mode",
        )
    return text
