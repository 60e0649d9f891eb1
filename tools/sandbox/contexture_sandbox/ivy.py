"""Jars from a Maven repository, through the Ivy that pip's pyspark carries.

The wheel of pyspark holds Ivy as a stand-alone program, so that neither Maven nor a Kafka archive is needed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from contexture.errors import ConfigurationError, RetriableError
from contexture.java.runtime import Java

Progress = Callable[[str], None]

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"

# Descriptors are not read for pinned modules: the pins name every jar, and half of the requests go away.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="repository"/>
  <resolvers>
    <ibiblio name="repository" m2compatible="true" usepoms={poms} useMavenMetadata="false" root={root}/>
  </resolvers>
</ivysettings>
"""


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """One module of a Maven repository at one version."""

    organisation: str
    name: str
    revision: str


def retrieve(java: Java, modules: Iterable[Module], folder: Path, *, transitive: bool, progress: Progress) -> None:
    """Puts the jars of `modules` below `folder` as organisation/name/name-revision.jar.

    With `transitive`, everything they depend on comes too.

    Raises:
        ConfigurationError: pyspark is not installed, or the repository's certificate is not trusted.
        RetriableError: the repository could not be reached or lacks a jar.
    """
    work = folder.parent
    module_file, settings_file = work / "ivy.xml", work / "ivysettings.xml"
    module_file.write_text(_module_file(modules, transitive=transitive))
    settings_file.write_text(_SETTINGS.format(poms=quoteattr(str(transitive).lower()), root=quoteattr(repository())))
    command = [
        *(java.command, *java.trust_options(), *_proxy_options(), "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-jar", _ivy_jar(), "-settings", settings_file, "-cache", work / "ivy-cache", "-ivy", module_file),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", folder / "[organisation]" / "[artifact]" / "[artifact]-[revision](-[classifier]).[ext]"),
    ]
    _run([str(word) for word in command], progress)


def repository() -> str:
    """The repository jars come from: CONTEXTURE_MAVEN_REPOSITORY, else Maven Central."""
    return os.environ.get("CONTEXTURE_MAVEN_REPOSITORY", MAVEN_CENTRAL).rstrip("/") + "/"


def _ivy_jar() -> Path:
    # Importing pyspark takes half a second; where it lies is enough.
    pyspark = importlib.util.find_spec("pyspark")
    for place in (pyspark.submodule_search_locations or ()) if pyspark else ():
        for jar in sorted(Path(place).glob("jars/ivy-*.jar")):
            return jar
    raise ConfigurationError(
        "the Ivy resolver of pyspark was not found", next_step="install the whole of pyspark: `pip install pyspark`"
    )


def _module_file(modules: Iterable[Module], *, transitive: bool) -> str:
    follow = quoteattr(str(transitive).lower())
    wanted = "\n".join(
        f"    <dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f' rev={quoteattr(module.revision)} transitive={follow} conf="default->default"/>'
        for module in modules
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="contexture" module="sandbox"/>\n'
        f'  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{wanted}\n  </dependencies>\n</ivy-module>\n"
    )


def _proxy_options() -> list[str]:
    """Java ignores the proxy variables of the environment; these options say the same."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        proxy = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        if scheme in {"http", "https"} and proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    return options


def _run(command: list[str], progress: Progress) -> None:
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ivy:
        for line in ivy.stdout or ():
            lines.append(line.rstrip())
            if line.startswith("downloading "):
                progress(f"fetching {line.split()[1].rpartition('/')[2]}")
    if ivy.returncode != 0:
        raise _failure(lines)


def _failure(lines: list[str]) -> ConfigurationError | RetriableError:
    text = "\n".join(lines)
    if "PKIX path building failed" in text:
        return ConfigurationError(
            f"Java does not trust the certificate of {repository()}",
            next_step="name your organisation's PEM bundle in SSL_CERT_FILE and try again",
        )
    reasons = [line.strip() for line in lines if "Exception" in line or "not found" in line or "FAILED" in line]
    return RetriableError(
        f"Kafka's jars could not be fetched from {repository()}: {(reasons or [text[-300:]])[0]}",
        next_step="connect to the network, or name a reachable Maven mirror in CONTEXTURE_MAVEN_REPOSITORY",
    )
