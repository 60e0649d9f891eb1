"""Converting landed structures into the form that a publication wants, where it allows that something is lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from contexture.events.rules import Findings, Violation
from contexture.publications import Publication
from contexture.sources.sdmx import Artefact, Format
from contexture.sources.sdmx.rules import RuleOptions, check
from contexture.sources.sdmx.rules.catalogue import LARGEST_JSON_BYTES

LOSS = "transcoding-loss"
_SCHEMA = "schema"
_DEFAULT = Format.SDMX_ML_2_1.media_type


@dataclass(frozen=True, slots=True)
class Converted:
    """A structure as it will be sent.

    Attributes:
        message: with the structure alone.
        media_type, content_hash: of that.
        lost: what it no longer says, as text; None: nothing.
        violations: of the rules about converted structures.
    """

    message: bytes = field(repr=False)
    media_type: str
    content_hash: bytes
    lost: str | None
    violations: tuple[Violation, ...]


class Conversion:
    """Converts into one form.

    Args:
        target: the form.
        options: what the publication wants of rules.
    """

    def __init__(self, target: Format, options: RuleOptions) -> None:
        self._target = target
        self._options = options
        # What a library writes is held to the schema, however long that takes; the rest was the registry's.
        severities = {rule: severity for rule, severity in options.severities.items() if rule == _SCHEMA}
        self._of_result = replace(options, severities=severities, largest_json_bytes=LARGEST_JSON_BYTES)

    def is_done(self, artefact: Artefact) -> bool:
        """Whether a structure has the form already."""
        return artefact.format is self._target

    def of(self, artefact: Artefact, moment: datetime) -> Converted:
        """A structure in the form.

        Args:
            artefact: as the registry wrote it.
            moment: when it was read.

        Raises:
            NotTranscodableError: it can't be converted (a `RejectedError`).
        """
        # Whoever converts nothing needs neither this nor the HTTP client that it comes with.
        from contexture.sources.sdmx.transcoding import transcode

        result = transcode(artefact, self._target, moment)
        found = Findings(self._options.severities)
        if result.losses:
            found.add(LOSS, f"converted from {result.source}, without {result.losses}")
        return Converted(
            message=result.artefact.message(),
            media_type=self._target.media_type,
            content_hash=result.artefact.content_hash,
            lost=str(result.losses) or None,
            violations=(*check(result.artefact, self._of_result), *found.violations),
        )


def conversion_of(publication: Publication, options: RuleOptions) -> Conversion | None:
    """The conversion that a publication allows; None: it allows none."""
    if not publication.message.allow_lossy:
        return None
    from contexture.sources.sdmx.transcoding import target_format

    target = target_format(publication.source.media_type or _DEFAULT)
    return Conversion(target, options) if target else None
