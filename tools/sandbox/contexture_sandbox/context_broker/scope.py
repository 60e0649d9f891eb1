"""Whose entities a request is about: tenant and service path headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contexture_sandbox.context_broker.answers import Refusal, bad_request

MAX_TENANT = 50
MAX_LEVELS = 10
MAX_LEVEL = 50
MAX_PATHS = 10
_WORD = re.compile(r"[A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ServicePath:
    """One path of the header: the level itself, or with everything below it (`/#`)."""

    path: str
    below: bool = False

    def covers(self, path: str) -> bool:
        """Whether an entity of `path` belongs to it."""
        if not self.below:
            return path == self.path
        return self.path == "/" or path == self.path or path.startswith(self.path + "/")


@dataclass(frozen=True, slots=True)
class Scope:
    """Tenant (lower-cased; "" is the default tenant) and service paths of one request."""

    tenant: str
    paths: tuple[ServicePath, ...]
    given: str | None = None

    def predicate(self) -> Callable[[str], bool] | None:
        """Whether a path is in scope; None when every path is."""
        if any(path.below and path.path == "/" for path in self.paths):
            return None
        if len(self.paths) == 1:
            return self.paths[0].covers
        return lambda path: any(one.covers(path) for one in self.paths)

    def write_path(self) -> str:
        """The one path a write goes to; `/` without a header.

        Raises:
            Refusal: several paths, or a wildcard.
        """
        if self.given is None:
            return "/"
        if len(self.paths) > 1:
            raise bad_request("more than one service path in context update request")
        if self.paths[0].below:
            raise bad_request("a component of ServicePath contains an illegal character")
        return self.paths[0].path


def scope_of(headers: Mapping[str, str]) -> Scope:
    """Tenant and paths of a request's headers.

    Raises:
        Refusal: 400, with Orion's words.
    """
    given = headers.get("fiware-servicepath")
    return Scope(_tenant(headers.get("fiware-service", "")), _paths("/#" if given is None else given), given)


def _tenant(name: str) -> str:
    if len(name) > MAX_TENANT:
        raise bad_request("bad length - a tenant name can be max 50 characters long")
    if not _WORD.fullmatch(name):
        raise bad_request("bad character in tenant name - only underscore and alphanumeric characters are allowed")
    return name.lower()


def _paths(header: str) -> tuple[ServicePath, ...]:
    parts = [part.strip() for part in header.split(",")]
    if len(parts) > MAX_PATHS:
        raise bad_request("too many service paths - a maximum of ten service paths is allowed")
    return tuple(_path(part) for part in parts)


def _path(text: str) -> ServicePath:
    if not text.startswith("/"):
        raise bad_request("Only /absolute/ Service Paths allowed [a service path must begin with /]")
    below = text.endswith("/#")
    trimmed = (text[:-2] if below else text).rstrip("/")
    levels = trimmed.split("/")[1:]
    if problem := _level_problem(levels):
        raise problem
    return ServicePath(trimmed or "/", below)


def _level_problem(levels: list[str]) -> Refusal | None:
    if len(levels) > MAX_LEVELS:
        return bad_request("too many components in ServicePath")
    for level in levels:
        if not level:
            return bad_request("empty component in ServicePath")
        if len(level) > MAX_LEVEL:
            return bad_request("component-name too long in ServicePath")
        if not _WORD.fullmatch(level):
            return bad_request("a component of ServicePath contains an illegal character")
    return None
