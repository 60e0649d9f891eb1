"""URNs of structures: reading them, and writing those that a message leaves out.

The form is `urn:sdmx:org.sdmx.infomodel.{package}.{class}={agency}:{id}({version})`, for an item followed by `.{item}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from contexture.sdmx.kinds import CLASSES, HOLDERS, PACKAGES, SINGLE_SCHEMES

DEFAULT_VERSION = "1.0"
_PREFIX = "urn:sdmx:org.sdmx.infomodel."
# The id of an item may hold brackets, so the version ends at the first bracket that closes.
_URN = re.compile(
    r"urn:sdmx:(?P<model>[A-Za-z.]+?)\.(?P<package>[a-z]+)\.(?P<class_name>[A-Za-z]+)="
    r"(?P<agency>[^:()\s]+):(?P<id>[^()\s]+)\((?P<version>[^()\s]*)\)(?:\.(?P<item>\S+))?"
)


@dataclass(frozen=True, slots=True)
class Urn:
    """What a URN says.

    Attributes:
        package: of the information model, such as `codelist`.
        class_name: such as `Codelist`, or of an item, `Code`.
        agency: with dots between an agency and its parts.
        id: of the maintainable artefact.
        version: as written; may be `1.0+`, `~` or `*` where the URN stands for several.
        item: id of an item with its parents' ids before it, None for the artefact itself.
        model: what the package is a part of; registries have kinds of their own in other models.
    """

    package: str
    class_name: str
    agency: str
    id: str
    version: str = DEFAULT_VERSION
    item: str | None = None
    model: str = "org.sdmx.infomodel"

    @classmethod
    def parse(cls, text: str) -> Urn:
        """What `text` says.

        Raises:
            ValueError: it is no URN with agency, id and version.
        """
        found = _URN.fullmatch(text.strip())
        if not found:
            raise ValueError("not a URN of the form urn:sdmx:org.sdmx.infomodel.package.Class=AGENCY:ID(VERSION)")
        return cls(**found.groupdict())

    @classmethod
    def of(cls, kind: str, agency: str, identifier: str, version: str | None = None) -> Urn:
        """The URN of a maintainable artefact of a kind of the model.

        >>> str(Urn.of("GeoGridCodelist", "EXAMPLE", "CL_GRID"))
        'urn:sdmx:org.sdmx.infomodel.codelist.Codelist=EXAMPLE:CL_GRID(1.0)'

        Raises:
            KeyError: the model has no such kind.
        """
        if kind in SINGLE_SCHEMES:
            version = DEFAULT_VERSION
        class_name = CLASSES.get(kind, kind)
        return cls(PACKAGES[kind], class_name, agency, identifier, version or DEFAULT_VERSION)

    def maintainable(self) -> Urn:
        """The URN of the artefact that holds this item; itself where it names no item."""
        if self.item is None:
            return self
        holder = HOLDERS.get(self.class_name)
        if holder is None:
            return replace(self, item=None)
        return Urn.of(holder, self.agency, self.id, self.version)

    def __str__(self) -> str:
        item = f".{self.item}" if self.item is not None else ""
        return f"urn:sdmx:{self.model}.{self.package}.{self.class_name}={self.agency}:{self.id}({self.version}){item}"
