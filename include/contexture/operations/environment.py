"""What the environment names: the home, the publications, and the connections."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from contexture.errors import ConfigurationError
from contexture.publications import Publication, PublicationError, discover
from contexture.sources.http.connection import BrokerConnection, ConnectionFields, broker_connection
from contexture.storage.file_tree import HOME_VARIABLE
from contexture.storage.home import Home, home_uri
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import PublicationStore

if TYPE_CHECKING:
    from contexture.sources.sdmx.registry import RegistryConnection

_TIMEOUT_SECONDS = 10.0
_CONNECTION = "AIRFLOW_CONN_"


def variable_of(connection_id: str) -> str:
    """The environment variable that Airflow looks for a connection in."""
    return f"{_CONNECTION}{connection_id.upper()}"


def connection_ids() -> list[str]:
    """Returns the ids of the connections that environment variables hold, sorted."""
    names = (name for name, text in os.environ.items() if name.startswith(_CONNECTION) and text)
    return sorted(name.removeprefix(_CONNECTION).lower() for name in names)


def from_environment(connection_id: str) -> BrokerConnection | None:
    """The connection to a context broker from its environment variable, in JSON or as a URI; None when it isn't set.

    Raises:
        ConfigurationError: the variable holds something else; the message never shows it.
    """
    fields = read(connection_id)
    return None if fields is None else context_broker(connection_id, fields)


def read(connection_id: str) -> ConnectionFields | None:
    """The fields of a connection from its environment variable, in JSON or as a URI; None when it isn't set.

    Raises:
        ConfigurationError: the variable holds something else; the message never shows it.
    """
    text = os.environ.get(variable_of(connection_id))
    if not text:
        return None
    try:
        return _from_json(text) if text.lstrip().startswith("{") else _from_uri(text)
    except (ValueError, TypeError, AttributeError):
        # `from None`: the foreign error may quote a part of the secret.
        raise _unreadable(connection_id) from None


def read_required(connection_id: str) -> ConnectionFields:
    """Returns the fields of a connection. Raises as `read`, and where the connection is not in the environment."""
    fields = read(connection_id)
    if fields is None:
        raise ConfigurationError(
            f"there is no connection {connection_id!r} in the environment",
            next_step=f"set {variable_of(connection_id)} as Airflow has it",
        )
    return fields


def context_broker(connection_id: str, fields: ConnectionFields) -> BrokerConnection:
    """The context broker behind a connection's fields.

    Raises:
        ConfigurationError: they lead to none; the message never shows them.
    """
    if not fields.host:
        raise _unreadable(connection_id)
    try:
        found = broker_connection(connection_id, fields)
    except (ValueError, TypeError, AttributeError):
        raise _unreadable(connection_id) from None
    # Someone is waiting at a command line.
    return found if "timeout_seconds" in fields.extra else replace(found, timeout_seconds=_TIMEOUT_SECONDS)


def registry(connection_id: str, address: str | None = None) -> RegistryConnection | None:
    """The structure registry at an address, or else behind a connection of the environment; None when there is none.

    Raises:
        ConfigurationError: the connection leads to none; the message never shows it.
    """
    fields = None if address is not None else read(connection_id)
    if address is None and fields is None:
        return None
    from contexture.sources.sdmx.registry import RegistryConnection, registry_connection

    if fields is None:
        return RegistryConnection(str(address), timeout_seconds=_TIMEOUT_SECONDS)
    try:
        found = registry_connection(connection_id, fields)
    except (ValueError, TypeError, AttributeError):
        raise _unreadable(connection_id) from None
    # Someone is waiting at a command line.
    return found if "timeout_seconds" in fields.extra else replace(found, timeout_seconds=_TIMEOUT_SECONDS)


def _unreadable(connection_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"{variable_of(connection_id)} cannot be read as an Airflow connection",
        next_step='write it as JSON, {"conn_type": "http", "host": "…", "port": 1026}, or as a URI, http://host:1026',
    )


def _from_json(text: str) -> ConnectionFields:
    data = json.loads(text)
    extra = data.get("extra") or {}
    return ConnectionFields(
        host=data.get("host") or "",
        kind=data.get("conn_type") or "",
        scheme=data.get("schema") or ("https" if data.get("conn_type") == "https" else ""),
        port=int(data["port"]) if data.get("port") else None,
        login=data.get("login") or "",
        password=data.get("password") or "",
        extra=json.loads(extra) if isinstance(extra, str) else extra,
    )


def _from_uri(text: str) -> ConnectionFields:
    kind, _, rest = text.partition("://")
    # Airflow allows the host to bring its own scheme: `http://https://host:443`.
    scheme, parts = ("", urlsplit(f"//{rest}")) if "://" not in rest else (urlsplit(rest).scheme, urlsplit(rest))
    query = dict(parse_qsl(parts.query))
    extra = json.loads(query["__extra__"]) if "__extra__" in query else query
    return ConnectionFields(
        host=unquote(parts.hostname or ""),
        kind=kind,
        scheme=scheme or unquote(parts.path.strip("/")) or ("https" if kind == "https" else ""),
        port=parts.port,
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        extra=extra,
    )


_SHORTEST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class FoundOutbox:
    """One outbox, the store of its publication, and its status."""

    store: PublicationStore
    status: OutboxStatus

    @property
    def publication(self) -> str:
        return self.store.name


def open_home() -> Home:
    """The files below CONTEXTURE_HOME, which must be that of Airflow's tasks."""
    return Home(home_uri())


def publications(home: Home) -> list[str]:
    """Returns the names of all publications that have files there, sorted."""
    return [name for name in home.folders("") if home.publication(name).is_used]


def stores(home: Home, publication: str | None) -> list[PublicationStore]:
    """Returns the store of one publication, or those of all.

    Raises:
        ConfigurationError: the publication has no files there.
    """
    known = publications(home)
    if publication is not None and publication not in known:
        raise ConfigurationError(
            f"publication {publication} has no files in {home.root}",
            next_step=f"choose among: {', '.join(known)}" if known else f"set {HOME_VARIABLE} as Airflow has it",
        )
    return [home.publication(name) for name in ([publication] if publication else known)]


def find_outbox(home: Home, text: str) -> FoundOutbox:
    """The outbox of an id, or of the beginning of one.

    Raises:
        ConfigurationError: there is none, or several begin like that.
    """
    found = [(each, name) for each in stores(home, None) for name in _matching(each, text)]
    if len(found) != 1:
        several = f"{len(found)} outboxes begin with {text}: {', '.join(name for _, name in found[:5])}"
        raise ConfigurationError(
            several if found else f"there is no outbox {text} in {home.root}",
            next_step="give more of the id"
            if found
            else f"list them with: contexture outbox list --all ({HOME_VARIABLE} must be as Airflow has it)",
        )
    owner, name = found[0]
    return FoundOutbox(owner, owner.outboxes.status(name))


def _matching(owner: PublicationStore, text: str) -> list[str]:
    names = owner.outboxes.names()
    exact = [name for name in names if name == text]
    if exact or len(text) < _SHORTEST_PREFIX:
        return exact
    return [name for name in names if name.startswith(text) and owner.outboxes.has_status(name)]


FOLDER_VARIABLE = "CONTEXTURE_PUBLICATIONS"
DEFAULT_FOLDER = Path("include/publications")


def publications_folder() -> Path:
    """Returns the folder that CONTEXTURE_PUBLICATIONS names, or the default one."""
    return Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)


def known_publications() -> list[Publication]:
    """Those with a good file; none where there is no folder of publications."""
    try:
        loaded = discover(publications_folder())
    except ConfigurationError:
        return []
    return [each.publication for each in loaded if each.publication is not None]


def named_publication(name: str, files: Path | None) -> Publication:
    """The publication of that name, of a file or folder; of CONTEXTURE_PUBLICATIONS when none is given.

    Files of others may be wrong: as in Airflow, they block no other publication.

    Raises:
        ConfigurationError: there is none, or it may be in a file that is no good publication.
    """
    folder = files or publications_folder()
    loaded = discover(folder)
    known = {each.publication.name: each.publication for each in loaded if each.publication is not None}
    if name in known:
        return known[name]
    problems = [problem for each in loaded if each.error is not None for problem in each.error.problems]
    if problems:
        raise PublicationError(folder, problems)
    raise ConfigurationError(
        f"there is no publication {name!r} in {folder}",
        next_step=f"choose among: {', '.join(sorted(known))}" if known else f"set {FOLDER_VARIABLE}",
    )
