"""Jars of a Maven repository: each at its address, through the proxies and certificates of the environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import certifi
import httpx

from contexture.errors import ConfigurationError, ContextureError, RetriableError

Progress = Callable[[str], None]

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"
TIMEOUT_SECONDS = 60.0
_AT_ONCE = 4


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """One module of a Maven repository at one version."""

    organisation: str
    name: str
    revision: str

    @property
    def jar(self) -> str:
        """The name of its jar."""
        return f"{self.name}-{self.revision}.jar"

    @property
    def path(self) -> str:
        """Where a repository keeps its jar."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.revision}/{self.jar}"


def repository() -> str:
    """The repository jars come from: CONTEXTURE_MAVEN_REPOSITORY, else Maven Central."""
    return os.environ.get("CONTEXTURE_MAVEN_REPOSITORY", MAVEN_CENTRAL).rstrip("/") + "/"


def download_jars(modules: Sequence[Module], folder: Path, progress: Progress) -> None:
    """Puts the jars of `modules` into `folder`, four at a time.

    Raises:
        ConfigurationError: the repository's certificate is not trusted.
        RetriableError: the repository could not be reached, or lacks a jar.
    """

    def download(module: Module) -> None:
        progress(f"fetching {module.jar}")
        try:
            with client.stream("GET", repository() + module.path) as answer:
                answer.raise_for_status()
                with (folder / module.jar).open("wb") as file:
                    for part in answer.iter_bytes():
                        file.write(part)
        except httpx.HTTPError as error:
            raise _translated(module, error) from error

    with (
        httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True, verify=_trusted()) as client,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        for _ in pool.map(download, modules):
            pass


def _trusted() -> ssl.SSLContext:
    """The authorities of the machine, or of SSL_CERT_FILE, and the public ones: the pins decide on the content."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _translated(module: Module, error: httpx.HTTPError) -> ContextureError:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ConfigurationError(
            f"the certificate of {repository()} is not trusted",
            next_step="name your organisation's PEM bundle in SSL_CERT_FILE and try again",
        )
    return RetriableError(
        f"{module.jar} could not be fetched from {repository()}: {error}",
        next_step="connect to the network, or name a reachable Maven mirror in CONTEXTURE_MAVEN_REPOSITORY",
    )
