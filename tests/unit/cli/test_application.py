"""The command line as a process: its help is quick, and errors are one sentence and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import contexture.cli as application
from contexture.cli import COMMANDS, app
from contexture.cli.schema import editor_schema

HEAVY = ("contexture.publications", "yaml", "numpy", "httpx", "orjson", "pyarrow", "confluent_kafka", "sqlalchemy")


def contexture(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "contexture.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.slow
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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_80_columns_shows_the_whole_name_of_every_option(name):
    command = get_command(import_module(COMMANDS[name][0]).app)
    below = {(name, sub): each for sub, each in getattr(command, "commands", {}).items()}
    for path, each in (below or {(name,): command}).items():
        shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output
        options = {option for parameter in each.params for option in parameter.opts if option.startswith("--")}
        assert [option for option in options if f"{option} " not in shown] == []


def test_an_unknown_command_names_the_nearest():
    result = CliRunner().invoke(app, ["chekc"])
    assert result.exit_code == 2
    assert "Did you mean 'check'" in result.output


def test_the_schema_is_printed_as_it_is_kept():
    assert CliRunner().invoke(app, ["schema"]).output == editor_schema()


def test_the_version_is_one_line():
    assert CliRunner().invoke(app, ["version"]).output.startswith("contexture ")


@pytest.mark.slow
def test_an_error_is_one_sentence_and_no_traceback(tmp_path):
    done = contexture("check", str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout) == (2, "")
    expected = (
        f"error: {tmp_path / 'nothing'} is neither a file nor a folder. Next: name a folder with publication files, "
        "or set CONTEXTURE_PUBLICATIONS as Airflow has it"
    )
    assert done.stderr.strip() == expected


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["version"], ["schema"], ["--help"]])
def test_output_that_finds_no_room_is_one_sentence_and_no_traceback(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "contexture.cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "error: No space left on device. Next: check the path, its permissions and its room\n"


def test_a_path_that_may_not_be_looked_at_is_one_sentence_and_no_traceback(monkeypatch, capsys):
    def denied(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "/srv/home")

    monkeypatch.setattr(application, "app", denied)
    with pytest.raises(SystemExit) as ended:
        application.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: /srv/home: Permission denied. Next: check the path, its permissions and its room\n"
    )


@pytest.mark.slow
def test_a_terminal_that_lacks_a_character_gets_its_code(tmp_path):
    file = tmp_path / "bikes.yaml"
    file.write_text(
        'name: bikes\ndescription: "Räder … \U0001f6b2"\nsource: {kind: ngsi, connection: b, service: ""}\n',
        encoding="utf-8",
    )

    text = contexture("check", str(file), PYTHONIOENCODING="ascii")
    document = contexture("check", "--json", str(file), PYTHONIOENCODING="ascii")

    assert r'description: "R\u00e4der \u2026 \ud83d\udeb2"' in text.stdout
    assert json.loads(document.stdout)["publications"][0]["configuration"]["description"] == "Räder … \U0001f6b2"


@pytest.mark.slow
@pytest.mark.parametrize(("no_color", "is_coloured"), [("1", False), ("", True)])
def test_no_color_takes_the_colours_away(no_color, is_coloured):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "contexture.cli", "check", "/nothing"]
    subprocess.run(command, stderr=theirs, check=False, env=os.environ | {"NO_COLOR": no_color})
    os.close(theirs)
    written = os.read(ours, 1000)
    os.close(ours)
    assert b"error: /nothing is neither" in written
    assert (b"\x1b[" in written) is is_coloured
