"""The body of an HTTP response, decoded within a bound: gzip or nothing, and never more than a piece at a time.

httpx decodes a network chunk as a whole, in every coding it knows: 32 kB of zstd became 2 GB before the first byte
could be counted. So its decoders are not used.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import httpx

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import BrokerUnavailableError, ReplyTooLargeError

if TYPE_CHECKING:
    from contexture.sources.http.connection import HttpConnection

ACCEPTED = "gzip"
"""The value of `Accept-Encoding`; a body without any coding is always acceptable."""

PIECE_BYTES = 1 << 20
_GZIP = 31


class CodingRefusedError(ConfigurationError):
    """The body has a coding that was not requested."""


class BrokenBodyError(BrokerUnavailableError):
    """The body is no gzip, or ends before it is whole."""


def decoded_pieces(response: httpx.Response, who: str) -> Iterator[bytes]:
    """Returns the decoded body of a response in pieces, as it arrives.

    Args:
        response: of a request with `Accept-Encoding: gzip`, not read yet.
        who: the sender, for messages.

    Raises:
        CodingRefusedError: the body has another coding than gzip, or several.
        BrokenBodyError: the body is no gzip, or ends before it is whole.
    """
    coding = response.headers.get("content-encoding", "")
    is_plain = coding.strip().lower() in {"", "identity"}
    # httpx passes the pieces of a plain body on as they are.
    return decode_content(response.iter_bytes() if is_plain else response.iter_raw(), coding, who)


def decode_content(pieces: Iterable[bytes], coding: str, who: str) -> Iterator[bytes]:
    """Returns the decoded content of a body, in pieces of at most `PIECE_BYTES` where it has a coding.

    `coding` is the header `Content-Encoding`; `who` and errors as `decoded_pieces`.
    """
    name = coding.strip().lower()
    if name in {"", "identity"}:
        yield from pieces
        return
    if name not in {"gzip", "x-gzip"}:
        raise CodingRefusedError(
            f"{who} compressed its response with {coding[:20]!r}",
            next_step="configure it, or the proxy before it, to respond with gzip or uncompressed, as requested",
        )
    yield from _gunzip(pieces, who)


def _gunzip(pieces: Iterable[bytes], who: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for piece in pieces:
            waiting = piece
            while waiting:
                # A few bytes may represent gigabytes.
                yield unpacker.decompress(waiting, PIECE_BYTES)
                waiting = unpacker.unconsumed_tail
                if unpacker.eof and (waiting := unpacker.unused_data):
                    unpacker = zlib.decompressobj(_GZIP)
        yield unpacker.flush()
    except zlib.error:
        raise _broken(who) from None
    if not unpacker.eof:
        raise _broken(who)


def _broken(who: str) -> BrokenBodyError:
    return BrokenBodyError(
        f"a response of {who} ends before it is complete", next_step="check its log; the run is retried"
    )


def limit_size(pieces: Iterable[bytes], limit_bytes: int, connection: HttpConnection) -> Iterator[bytes]:
    """Passes pieces on.

    Raises:
        ReplyTooLargeError: they have more bytes than the limit in all.
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit_bytes:
            raise ReplyTooLargeError(
                f"a response of {connection.WHO} at {connection.address} is larger than {limit_bytes:,} bytes",
                next_step="raise reply_bytes in the extra of the registry's connection",
            )
        yield piece
