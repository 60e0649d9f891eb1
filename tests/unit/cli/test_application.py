"""The command line as a process: its help is quick, and errors are one sentence and an exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from contexture.cli import app
from contexture.cli.application import COMMANDS
from contexture.publications.editor_schema import editor_schema

HEAVY = ("contexture.publications", "yaml", "numpy", "httpx", "orjson", "pyarrow", "confluent_kafka", "sqlalchemy")


def contexture(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "contexture.cli", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["version"]])
def test_help_and_version_load_nothing_heavy(arguments):
    script = (
        "import sys\nfrom contexture.cli import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "loaded []"


def test_the_help_lists_every_command():
    output = CliRunner().invoke(app, ["--help"]).output
    assert [name for name in COMMANDS if f" {name} " not in output] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_has_help_of_its_own(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_an_unknown_command_names_the_nearest():
    result = CliRunner().invoke(app, ["chekc"])
    assert result.exit_code == 2
    assert "Did you mean 'check'" in result.output


def test_the_schema_is_printed_as_it_is_kept():
    assert CliRunner().invoke(app, ["schema"]).output == editor_schema()


def test_the_version_is_one_line():
    assert CliRunner().invoke(app, ["version"]).output.startswith("contexture ")


def test_an_error_is_one_sentence_and_no_traceback(tmp_path):
    done = contexture("check", str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout) == (2, "")
    expected = (
        f"error: {tmp_path / 'nothing'} is neither a file nor a folder. Next: name a folder with publication files"
    )
    assert done.stderr.strip() == expected
