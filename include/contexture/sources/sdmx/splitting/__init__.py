"""Splitting a structure message into its artefacts."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.sources.sdmx import formats
from contexture.sources.sdmx.errors import Limits, SplitWarning
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.splitting.encodings import ByteStream, Utf8Source
from contexture.sources.sdmx.splitting.json_reader import JsonReader, LateHeader
from contexture.sources.sdmx.splitting.xml_reader import XmlReader

_ORDINARY = Limits()


class Split(Iterator[Artefact]):
    """The artefacts of one message, in its order, and what else was found in it.

    It can be iterated once; `findings` and `format` are complete at its end.
    """

    def __init__(self, reader: XmlReader | JsonReader) -> None:
        self._reader = reader
        self._artefacts = reader.artefacts()

    def __next__(self) -> Artefact:
        return next(self._artefacts)

    @property
    def format(self) -> Format | None:
        """Of the message; None as long as nothing of it was read."""
        return self._reader.format

    @property
    def findings(self) -> tuple[SplitWarning, ...]:
        """What was found so far outside of artefacts; each artefact has findings of its own."""
        return tuple(self._reader.findings)


def split(stream: ByteStream, media_type: str | None = None, *, limits: Limits = _ORDINARY) -> Split:
    """Yields the maintainable artefacts of a structure message, in its order, each with its own bytes.

        for artefact in split(open("structures.xml", "rb")):
            print(artefact.urn, artefact.size)

    Every format is known by its bytes: SDMX-ML 1.0 to 3.1 (structure messages, and registry interface messages that
    hold structures), SDMX-JSON 1.0 to 2.1 and Fusion-JSON, in any encoding. The message is read once, piece by piece;
    memory follows the largest artefact. (A message in JSON with its header at the end is read twice where the stream
    allows.)

    Args:
        stream: the message, to be read in binary.
        media_type: that of the sender; a hint where the bytes leave something open.
        limits: how large and how deep it may be.

    Raises:
        StructureMessageError: it is broken, empty, or no structure message. What came before is right, but not all.
        UnsplittableFormatError: it is SDMX-EDI or XLSX.
        LimitExceededError: it is larger or deeper than `limits` allow.
    """
    late = LateHeader(stream, limits)
    source = Utf8Source(stream, limits)
    if formats.family(source.head, media_type) == "xml":
        return Split(XmlReader(source, limits))
    return Split(JsonReader(source, limits, media_type, late))
