"""The message around one artefact of SDMX-ML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from contexture.sdmx.artefact import Envelope
from contexture.sdmx.encodings import Encoding
from contexture.sdmx.formats import Format
from contexture.sdmx.xml_layout import Role, Root
from contexture.sdmx.xml_names import parted

Prefixes = Mapping[str, str]
"""Namespaces by prefix; the default namespace has the prefix ""."""

START_TAG = re.compile(rb"<([^\s/>\"']+)[^>\"']*+(?:\"[^\"]*+\"[^>\"']*+|'[^']*+'[^>\"']*+)*+>")
_DECLARATION = re.compile(rb"\s*<\?xml\b.*?\?>", re.DOTALL)
_WITHOUT_STRUCTURES = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})


@dataclass(frozen=True, slots=True)
class Level:
    """An element around artefacts.

    Attributes:
        role: what it is.
        name: its expanded name.
        tag: its start tag, as it stands.
        prefixes: what is declared where it begins.
    """

    role: Role
    name: str
    tag: bytes
    prefixes: Prefixes

    @property
    def end_tag(self) -> bytes:
        """Closes it."""
        return end_tag(self.tag)


def end_tag(tag: bytes) -> bytes:
    """The end tag of a start tag."""
    found = START_TAG.match(tag)
    return b"</%s>" % (found[1] if found else b"")


def around(root: Root, prolog: bytes, header: bytes, levels: Sequence[Level], encoding: Encoding) -> Envelope:
    """The message around what stands inside `levels`.

    A structure message is kept as it is: prolog, start tags and header are its own bytes. Of a registry interface
    message, which may ask for an action that the artefact alone has nothing to do with, a structure message is made.

    Args:
        root: what the message is.
        prolog: all before the root's start tag.
        header: the whole header, or nothing.
        levels: the elements around the artefact, the root first.
        encoding: of the message.
    """
    if root.role is Role.INTERFACE:
        before, after = _structure_message(root, prolog, header, levels)
    else:
        before = b"".join((prolog, levels[0].tag, header, *(level.tag for level in levels[1:])))
        after = b"".join(level.end_tag for level in reversed(levels))
    return Envelope(encoding.bom + encoding.encoded(before), encoding.encoded(after))


def _structure_message(root: Root, prolog: bytes, header: bytes, levels: Sequence[Level]) -> tuple[bytes, bytes]:
    first, last = levels[0], levels[-1]
    prefix = _unused(first.prefixes, last.prefixes)
    declaration = _DECLARATION.match(prolog)
    before = [
        declaration[0] if declaration else b"",
        _tag(prefix, "Structure", {**first.prefixes, prefix: root.namespace}),
    ]
    before.append(header)
    after = [f"</{prefix}:Structure>".encode()]
    in_container = last.role is Role.CONTAINER
    if root.format in _WITHOUT_STRUCTURES:
        local = parted(last.name)[1] if in_container else "Structures"
        before.append(_tag(prefix, local, last.prefixes))
        after.append(f"</{prefix}:{local}>".encode())
    else:
        before.append(_tag(prefix, "Structures", last.prefixes))
        after.append(f"</{prefix}:Structures>".encode())
        if in_container:
            before.append(last.tag)
            after.append(last.end_tag)
    return b"".join(before), b"".join(reversed(after))


def _tag(prefix: str, local: str, prefixes: Prefixes) -> bytes:
    declared = "".join(
        f" xmlns{':' if each else ''}{each}={quoteattr(namespace)}"
        for each, namespace in prefixes.items()
        if each != "xml" and (namespace or not each)
    )
    return f"<{prefix}:{local}{declared}>".encode()


def _unused(*scopes: Prefixes) -> str:
    prefix = "message"
    while any(prefix in scope for scope in scopes):
        prefix += "_"
    return prefix
