"""docs/ as a site: it builds without a warning, reads without a network, and its commands exist."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from contexture.cli import COMMANDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# In a line of a shell, what precedes a command: variables, and the folder of the environment.
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(contexture|make|airflow|python)\b(.*)$")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "var" / "site"


def test_every_page_is_built(site):
    assert (site / "index.html").is_file()
    assert (site / "how-to" / "stuck-outbox" / "index.html").is_file()


def test_nothing_is_loaded_from_elsewhere(site):
    source = r"<(?:script|img|iframe)[^>]*\bsrc=\"(?:https?:)?//"
    style = r"<link[^>]*stylesheet[^>]*href=\"(?:https?:)?//"
    loaded = re.compile(f"{source}|{style}")
    assert [page for page in site.rglob("*.html") if loaded.search(page.read_text(encoding="utf-8"))] == []


def test_every_page_has_a_place_in_the_navigation():
    def names(entries: list) -> set[str]:
        inner = [value for entry in entries for value in (entry.values() if isinstance(entry, dict) else [entry])]
        return {name for value in inner for name in (names(value) if isinstance(value, list) else [value])}

    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert names(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]) == pages - {"decisions/template.md"}


def shell_lines(text: str) -> Iterator[str]:
    """The lines of blocks without a language, or with a shell's."""
    language: str | None = None
    for line in text.replace("\\\n", " ").splitlines():
        fence = re.match(r" *```(\w*)", line)
        if fence:
            language = fence[1] if language is None else None
        elif language in {"", "sh", "bash", "shell", "console"}:
            yield line


def written_commands() -> list[tuple[str, str]]:
    """Page and command of every line of shell, and of every command in a sentence, that calls us."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inline = re.findall(r"`((?:contexture|make|airflow) [^`]+)`", text)
        # What runs in a container is a command like any other.
        shown = [re.sub(r"^ *docker compose exec [\w-]+ ", "", line) for line in shell_lines(text)]
        lines = [*shown, *(re.sub(r"[\[\]…]|\\\|", " ", each) for each in inline)]
        found += [(page.name, line.split("  #")[0].strip()) for line in lines if COMMAND.match(line)]
    return found


def test_there_are_commands_in_the_pages():
    assert len(written_commands()) > 40


@pytest.mark.parametrize(("page", "line"), written_commands())
def test_every_command_exists_with_its_options(page, line):
    match = COMMAND.match(line)
    assert match is not None
    words = shlex.split(re.split(r"\s(?:\||>|&&|;|&)", match[2])[0].rstrip(";"), comments=True)
    if match[1] == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in words if "=" not in word} <= targets
    elif match[1] == "airflow":
        assert unknown_to_airflow(words) == []
    elif match[1] == "python":
        assert find_spec(words[1]) if words[0] == "-m" else (ROOT / words[0]).is_file()
    else:
        assert unknown(words) == []
        assert lacking(words) == []


def unknown(words: list[str]) -> list[str]:
    """Those of a command's words that no command or option answers to."""
    if not words or words[0].startswith("-") or words[0].isupper():
        return [word for word in words if word.startswith("-") and word != "--help"]
    if words[0] not in COMMANDS:
        return words[:1]
    command, rest = meant(words)
    if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        return rest[:1]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    return [word.split("=")[0] for word in rest if word.startswith("-") and word.split("=")[0] not in known]


def lacking(words: list[str]) -> list[str]:
    """The options that a command can't do without; its name alone only speaks of it."""
    if not words or words[0] not in COMMANDS:
        return []
    command, rest = meant(words)
    needed = [each.opts[0] for each in command.params if each.required and each.param_type_name == "option"]
    return [each for each in needed if rest and each not in {word.split("=")[0] for word in rest}]


def meant(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words lead to, and those that follow its name."""
    command, rest = get_command(import_module(COMMANDS[words[0]][0]).app), words[1:]
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


@cache
def airflow_words() -> frozenset[str]:
    """Commands and options that Airflow declares; importing it takes seconds, and its file declares the same."""
    (folder,) = find_spec("airflow").submodule_search_locations or []
    tree = ast.parse((Path(folder) / "cli" / "cli_config.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [keyword.value for call in calls for keyword in call.keywords if keyword.arg in {"name", "flags"}]
    given += [call.args[0] for call in calls if getattr(call.func, "id", "") == "Arg" and call.args]
    parts = [part for value in given for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return frozenset(part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def unknown_to_airflow(words: list[str]) -> list[str]:
    """Those of a command's words that Airflow does not know; its groups have commands of one word."""
    options = [word.split("=")[0] for word in words if word.startswith("-")]
    plain = [word for word in words if not word.startswith("-")]
    grouped = plain[0] in {"backfill", "connections", "dags", "db", "pools", "providers"}
    return [word for word in (*plain[: 1 + grouped], *options) if word not in airflow_words()]
