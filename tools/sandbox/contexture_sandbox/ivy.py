"""What Kafka's jars depend on, by the Ivy that pip's pyspark carries: only to write new pins."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from contexture.errors import ConfigurationError, RetriableError
from contexture.java.runtime import Java
from contexture_sandbox.maven import Module, Progress, repository

_SETTINGS = """<ivysettings>
  <settings defaultResolver="repository"/>
  <resolvers>
    <ibiblio name="repository" m2compatible="true" usepoms="true" useMavenMetadata="false" root={root}/>
  </resolvers>
</ivysettings>
"""


def resolve_modules(java: Java, modules: Iterable[Module], folder: Path, progress: Progress) -> None:
    """Puts the jars of `modules` and all they depend on below `folder` as organisation/name/name-revision.jar.

    Raises:
        ConfigurationError: pyspark is not installed.
        RetriableError: the repository could not be reached or lacks a jar.
    """
    work = folder.parent
    module_file, settings_file = work / "ivy.xml", work / "ivysettings.xml"
    module_file.write_text(_module_file(modules))
    settings_file.write_text(_SETTINGS.format(root=quoteattr(repository())))
    command = [
        *(java.command, "-Djava.net.useSystemProxies=true", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-jar", _ivy_jar(), "-settings", settings_file, "-cache", work / "ivy-cache", "-ivy", module_file),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", folder / "[organisation]" / "[artifact]" / "[artifact]-[revision](-[classifier]).[ext]"),
    ]
    _run([str(word) for word in command], progress)


def _ivy_jar() -> Path:
    # Importing pyspark takes half a second; where it lies is enough.
    pyspark = importlib.util.find_spec("pyspark")
    for place in (pyspark.submodule_search_locations or ()) if pyspark else ():
        for jar in sorted(Path(place).glob("jars/ivy-*.jar")):
            return jar
    raise ConfigurationError(
        "the Ivy resolver of pyspark was not found", next_step="install the whole of pyspark: `pip install pyspark`"
    )


def _module_file(modules: Iterable[Module]) -> str:
    wanted = "\n".join(
        f"    <dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f' rev={quoteattr(module.revision)} transitive="true" conf="default->default"/>'
        for module in modules
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="contexture" module="sandbox"/>\n'
        f'  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{wanted}\n  </dependencies>\n</ivy-module>\n"
    )


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
        reasons = [line.strip() for line in lines if "Exception" in line or "not found" in line or "FAILED" in line]
        raise RetriableError(
            f"Kafka's jars could not be resolved from {repository()}: {(reasons or lines[-1:] or ['no output'])[0]}",
            next_step="connect to the network, or name a reachable Maven mirror in CONTEXTURE_MAVEN_REPOSITORY",
        )
