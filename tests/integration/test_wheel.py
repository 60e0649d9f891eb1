"""The wheel holds all that an editable install has, and runs without the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built with what is installed and unpacked."""
    return unpacked_wheel(PROJECT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sandbox_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_wheel(PROJECT / "tools" / "sandbox", tmp_path_factory.mktemp("sandbox"))


def unpacked_wheel(project: Path, folder: Path) -> Path:
    uv = Path(sys.executable).with_name("uv")
    build = [
        str(uv),
        "build",
        "--wheel",
        "--no-build-isolation",
        "--offline",
        "--quiet",
        "-o",
        str(folder),
        str(project),
    ]
    subprocess.run(build, check=True, cwd=PROJECT)
    (built,) = folder.glob("contexture*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def files(root: Path, package: str) -> set[str]:
    """All files of a package but what Python made of them."""
    found = (path for path in (root / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix() for path in found}


@pytest.mark.parametrize(
    ("package", "below"), [("contexture", "include"), ("contexture_airflow", "plugins"), ("spark_jobs", ".")]
)
def test_the_wheel_holds_every_file_of_each_package(wheel: Path, package: str, below: str) -> None:
    assert files(wheel, package) == files(PROJECT / below, package)


def test_the_wheel_holds_the_data_that_code_reads(wheel: Path) -> None:
    assert list((wheel / "spark_jobs/quality/templates").iterdir())


def test_the_wheel_holds_the_product_and_nothing_that_tests_it(wheel: Path) -> None:
    assert sorted(path.name for path in wheel.iterdir()) == [
        "contexture",
        "contexture-0.1.0.dist-info",
        "contexture_airflow",
        "spark_jobs",
    ]
    assert sorted(path.name for path in (wheel / "contexture").iterdir()) == [
        "__init__.py",
        "cli",
        "errors.py",
        "events",
        "importers",
        "java",
        "kafka",
        "lazy_names.py",
        "monitoring",
        "operations",
        "publications",
        "reception",
        "records",
        "sending",
        "sources",
        "storage",
    ]


def test_the_sandbox_is_a_wheel_of_its_own_with_its_data(sandbox_wheel: Path) -> None:
    assert sorted(path.name for path in sandbox_wheel.iterdir()) == [
        "contexture_sandbox",
        "contexture_sandbox-0.1.0.dist-info",
    ]
    assert files(sandbox_wheel, "contexture_sandbox") == files(PROJECT / "tools/sandbox", "contexture_sandbox")
    assert (sandbox_wheel / "contexture_sandbox/kafka-jars.json").is_file()
    assert (sandbox_wheel / "contexture_sandbox/context_broker/data/README.md").is_file()
    assert {path.name for path in sandbox_wheel.glob("*.dist-info/licenses/*")} == {"LICENSE", "NOTICE"}


def test_airflow_finds_our_connection_types_by_the_wheel(wheel: Path) -> None:
    (entry_points,) = wheel.glob("contexture-*.dist-info/entry_points.txt")
    assert (
        "[apache_airflow_provider]\nprovider_info = contexture_airflow.connections.provider:provider_info"
        in entry_points.read_text()
    )


def test_the_command_line_runs_from_the_wheel_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from contexture.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, str(wheel), "check", str(PROJECT / "include/publications/vehicles.yaml")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert "vehicles" in ran.stdout


def test_modules_come_from_the_wheel_and_not_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import contexture, contexture_airflow, spark_jobs;"
        "print(contexture.__file__, contexture_airflow.__file__, spark_jobs.__file__)"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, str(wheel)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert [path.startswith(str(wheel)) for path in ran.stdout.split()] == [True, True, True]
