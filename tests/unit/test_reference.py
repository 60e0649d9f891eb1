"""docs/reference says what the code says, and every document links to what is there."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from contexture import errors
from contexture.cli import COMMANDS, exit_codes
from contexture.monitoring.rows import TransactionStatus
from contexture.monitoring.tables import METADATA, VIEWS
from contexture.publications import load_publication_file
from contexture.records.cloudevents.record import CONTENT_TYPE, PREFIX
from contexture.sending import dead_letters
from contexture.storage.replay import BACKFILL_HEADER
from contexture.storage.schemas import HEADER_PREFIX, REGISTRY_HEADER, TRANSCODED_HEADERS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = ("include", "plugins", "spark_jobs", "dags", "tools/sandbox")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def generator() -> ModuleType:
    path = ROOT / "docs" / "generate_reference.py"
    spec = spec_from_file_location("generate_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """The pages as the code makes them; reading the whole code for its messages takes seconds."""
    return generator().pages()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commands.md", "publication.md", "row-rules.md", "kafka-errors.md", "messages.md"])
def test_generated_pages_are_up_to_date(name, generated):
    assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == generated[name]


def test_every_variable_of_ours_is_in_the_reference():
    named = {name for path in SOURCES for name in re.findall(r"\bCONTEXTURE_[A-Z_]*[A-Z]\b", path.read_text())}
    page = (ROOT / "docs" / "reference" / "environment-variables.md").read_text()
    documented = set(re.findall(r"^\| `(CONTEXTURE_[A-Z_]+)`", page, re.MULTILINE))
    assert documented == named


def test_every_exit_code_and_command_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)} == codes
    assert set(re.findall(r"^\| `contexture ([\w-]+)", page, re.MULTILINE)) == set(COMMANDS)


def rows_of(page: str) -> dict[str, str]:
    """The rows of a page's tables by each of the names in their first column."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    cells = re.findall(r"^\| (.+?) \| (.*) \|$", text, re.MULTILINE)
    return {name: rest for first, rest in cells for name in re.findall(r"`([^`]+)`", first) or [first]}


@pytest.mark.parametrize("table", sorted(METADATA.tables))
def test_every_column_of_the_operational_tables_is_in_the_reference(table):
    columns = rows_of("tables.md")[table].rpartition(" | ")[2]
    named = re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", columns))
    assert sorted(named) == sorted(column.name for column in METADATA.tables[table].columns)


def test_every_view_and_status_is_in_the_reference():
    rows = rows_of("tables.md")
    assert set(VIEWS) <= set(rows)
    assert {name for name in rows if name.isdigit()} == {str(status.value) for status in TransactionStatus}


def test_every_header_is_in_the_reference():
    ours = {REGISTRY_HEADER.name.removeprefix(HEADER_PREFIX), *TRANSCODED_HEADERS, BACKFILL_HEADER}
    families = {f"{PREFIX}…", CONTENT_TYPE, f"{dead_letters.HEADER}…"}
    assert {name for name in rows_of("records.md") if re.fullmatch(r"[\w-]+…?", name)} >= ours | families


def test_every_class_of_error_is_in_the_reference_with_its_intent():
    rows = rows_of("errors.md")
    kinds = {kind.__name__: kind.intent for kind in errors.ContextureError.__subclasses__()}
    for name in ("RetriableError", "ConfigurationError", "RejectedError", "DefectError"):
        assert rows[name].startswith(f"`{kinds[name]}`"), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document):
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_of_the_tree_exist(document):
    named = re.findall(
        r"`((?:tests|include|plugins|spark_jobs|dags|docs|bench|tools|fuzz)/[\w./-]*)`", document.read_text()
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_decision_follows_the_template():
    for path in (ROOT / "docs" / "decisions").glob("0*.md"):
        headings = re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], path.name


PUBLICATION = re.compile(r"^( *)```yaml\n((?:(?!^ *```).)*?^ *name: .*?)^ *```", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    found = [(path, match) for path in DOCUMENTS for match in PUBLICATION.finditer(path.read_text(encoding="utf-8"))]
    return [(path.name, dedent(match[2])) for path, match in found]


def test_there_are_examples_of_publications():
    assert {name for name, _ in examples()} == {
        "README.md",
        "add-a-publication.md",
        "get-alerts.md",
        "publish-structures.md",
        "read-an-ngsi-ld-broker.md",
        "publish-operations-events.md",
    }


@pytest.mark.parametrize(("name", "text"), examples())
def test_examples_of_publications_are_right(name, text, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(text)
    kinds = {
        "publish-structures.md": "sdmx",
        "publish-operations-events.md": "operations",
    }
    assert load_publication_file(file).source.kind == kinds.get(name, "ngsi")
