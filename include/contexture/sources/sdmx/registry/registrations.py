"""Data registrations of SDMX-REST 2.1 and later: all there are, and single ones by their id.

A registry may hold none, so that an empty response is no sign of illness in itself. It is accepted from a registry that
states it: by its own "not found", by an empty response (204), or by a whole message whose status is `Success`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format, format_of, same_artefact
from contexture.sources.sdmx.registry.interface import NotExpressible, NotModified, Reply, StructureQuery
from contexture.sources.sdmx.registry.structures import Contents
from contexture.sources.sdmx.registry.transport import BAD_REQUEST, NO_CONTENT, NOT_FOUND, NOT_IMPLEMENTED
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.urn import REGISTRATION, Urn

EVERY_REGISTRATION = StructureQuery(REGISTRATION)
_LIST_FORMATS = (Format.SDMX_ML_2_1, Format.SDMX_ML_3_0, Format.SDMX_ML_3_1, Format.FUSION_JSON)
_NOT_EXPRESSED = "has no message for data registrations"


def registration_media_type(media_type: str) -> str | None:
    """Returns the media type of registrations where structures have this one; None where it has none."""
    format_ = format_of(media_type)
    return format_.registry_media_type if format_ else None


class Registrations:
    """Requests data registrations; every method makes one attempt.

    Args:
        contents: sends the requests.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def list_all(self, media_type: str | None = None) -> tuple[str, ...]:
        """Returns the URNs of all registrations, each once.

        Args:
            media_type: of structures; the format that is tried first.

        Raises:
            IncompleteReplyError: the response is no whole message, or reports a failure.
            ConfigurationError: the registry does not offer registrations.
        """
        if self._contents.paths.api == "v1":
            raise self._not_offered("its interface is SDMX-REST 1")
        with tempfile.TemporaryDirectory(prefix="contexture-registrations-") as folder:
            for form in self._list_forms(media_type):
                found = self._listed(form, Path(folder, "registrations"))
                if found is not None:
                    return found
        raise self._not_offered("it writes none of the formats that contain them (406)")

    def read(self, query: StructureQuery, media_type: str, into: Path) -> Reply | NotExpressible | None:
        """As `Contents.read`, in the format of registrations."""
        form = registration_media_type(media_type)
        if form is None:
            return NotExpressible(f"{media_type} {_NOT_EXPRESSED}")
        found = self._contents.read(query, form, into)
        return None if isinstance(found, NotModified) else found

    def read_one(self, urn: str, media_type: str, into: Path) -> Reply | NotExpressible | None:
        """As `Registry.read_one`; that there is none is accepted where the list lacks it too.

        Raises:
            IncompleteReplyError: the list has it.
        """
        named = Urn.parse(urn)
        query = StructureQuery(REGISTRATION, named.agency, named.id, named.version)
        found = self.read(query, media_type, into)
        if isinstance(found, NotExpressible):
            return found
        if found is not None and same_artefact(urn) in self._contents.names_in(found, query, urn):
            return found
        if urn in self.list_all(media_type):
            raise IncompleteReplyError(
                f"{self._contents.who} lists {urn}, and returns nothing of it",
                next_step="check the registry's log; nothing counts as deleted, and the run is retried",
            )
        return None

    def _list_forms(self, media_type: str | None) -> Iterator[str]:
        own = registration_media_type(media_type) if media_type else None
        if own is not None:
            yield own
        yield from (form for each in _LIST_FORMATS if (form := each.registry_media_type) and form != own)

    def _listed(self, form: str, into: Path) -> tuple[str, ...] | None:
        """Returns the list in one format; None where the registry does not write it."""
        fetched = self._contents.fetch(self._contents.paths.of(EVERY_REGISTRATION), form, into)
        if fetched is None or fetched.status == NOT_IMPLEMENTED:
            return None
        if fetched.status == NO_CONTENT or (fetched.status == NOT_FOUND and fetched.is_registrys):
            return ()
        if fetched.status in {NOT_FOUND, BAD_REQUEST}:
            # The registry may be away, with a web server in its place.
            self._contents.check_not_found(fetched)
            raise self._not_offered(f"it does not know the request ({fetched.status})")
        reply = self._contents.answer(fetched, EVERY_REGISTRATION, form, into)
        return self._urns_in(reply) if isinstance(reply, Reply) else None

    def _urns_in(self, reply: Reply) -> tuple[str, ...]:
        with reply.path.open("rb") as stream:
            artefacts = split(stream, reply.media_type)
            try:
                urns = [each.urn for each in artefacts if each.kind == REGISTRATION and each.urn]
            except StructureMessageError as error:
                raise self._broken(f"is not a complete message: {error.message}") from error
        if notices := [finding for finding in artefacts.findings if finding.code == "notice"]:
            raise self._broken(f"comes with a notice: {notices[0].message}")
        return tuple(dict.fromkeys(urns))

    def _broken(self, what: str) -> IncompleteReplyError:
        return IncompleteReplyError(
            f"the list of data registrations of {self._contents.who} {what}",
            next_step="check the registry's log; nothing counts as deleted, and the run is retried",
        )

    def _not_offered(self, reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._contents.who} does not offer data registrations: {reason}",
            next_step="leave source.registrations out, or set api: v2 in the extra of the connection if the registry "
            "has SDMX-REST 2.1 or later",
        )
