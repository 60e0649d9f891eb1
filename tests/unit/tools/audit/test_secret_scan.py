"""What looks like a secret in a file of git is reported by its place and kind, never by its value."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from detect_secrets import SecretsCollection
from detect_secrets.settings import transient_settings
from rich.console import Console

from tools.audit.__main__ import ROOT, Report, secrets
from tools.audit.detectors import all_detectors
from tools.audit.secret_scan import ACCEPTED, Secret, read_accepted, secrets_in, settings, tracked_files, write_accepted

pytestmark = pytest.mark.slow

# Put together here, so that the scan of this repository finds nothing.
KEY = "AKIA" + "Q3EGHT7MXLR2WZPA"
HEADER = "-----BEGIN " + "PRIVATE KEY-----"
WORD = "pass" + "word"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ACCEPTED).parent.mkdir(parents=True)
    (tmp_path / ACCEPTED).write_text("{}\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    return tmp_path


@pytest.fixture
def scanned(repository: Path) -> Callable[..., tuple[int, str]]:
    def scan(*, accept: bool = False) -> tuple[int, str]:
        output = io.StringIO()
        report = Report(Console(file=output, soft_wrap=True), strict=False)
        secrets(report, repository, accept=accept)
        return report.exit_code, output.getvalue()

    return scan


def test_a_repository_without_secrets_passes(repository, scanned):
    (repository / "code.py").write_text("print('hello')\n")
    assert scanned() == (0, "secrets: 3 files, 0 to check, 0 accepted\n")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f"key = '{KEY}'", "AWS Access Key"),
        (HEADER, "Private Key"),
        (f'{WORD} = "correct-horse-9"', "Secret Keyword"),
        ("https://user:" + "hunter2hunter@example.org/", "Basic Auth Credentials"),
    ],
)
def test_a_secret_is_reported_without_its_value(repository, scanned, line, kind):
    (repository / "code.py").write_text(f"\n{line}\n")
    code, printed = scanned()
    assert code == 1
    assert f"looks like a secret: code.py:2: {kind}" in printed
    assert KEY not in printed
    assert "horse" not in printed
    assert "hunter2" not in printed


def test_a_comment_accepts_nothing(repository, scanned):
    (repository / "code.py").write_text(f"key = '{KEY}'  # pragma: " + "allowlist secret\n")
    assert scanned()[0] == 1


def test_what_is_accepted_is_so_wherever_it_moves_within_its_file(repository, scanned):
    (repository / "code.py").write_text(f"key = '{KEY}'\n")
    assert scanned(accept=True)[0] == 0
    (repository / "code.py").write_text(f"\n\nkey = '{KEY}'\n")
    assert scanned() == (0, "secrets: 3 files, 0 to check, 1 accepted\n")
    (repository / "other.py").write_text(f"key = '{KEY}'\n")
    assert scanned()[0] == 1
    assert KEY not in (repository / ACCEPTED).read_text()


def test_what_is_accepted_and_gone_is_reported(repository, scanned):
    (repository / "code.py").write_text(f"key = '{KEY}'\n")
    scanned(accept=True)
    (repository / "code.py").write_text("\n")
    code, printed = scanned()
    assert (code, "1 accepted values are gone" in printed) == (0, True)


def test_ignored_files_are_not_looked_at_and_new_ones_are(repository):
    (repository / "ignored").write_text(KEY)
    (repository / "new").write_text("x")
    assert tracked_files(repository) == [".gitignore", "new", ACCEPTED]


def test_without_a_repository_the_skip_is_reported(tmp_path):
    output = io.StringIO()
    report = Report(Console(file=output, soft_wrap=True), strict=True)
    secrets(report, tmp_path)
    assert report.exit_code == 1
    assert output.getvalue().startswith("SKIPPED: the secret scan: this is no git repository. Next: ")


def test_the_file_of_what_is_accepted_is_read_as_it_was_written():
    accepted = [Secret("a", "K", "1"), Secret("a", "K", "2"), Secret("b", "L", "1", 7)]
    assert read_accepted(write_accepted(accepted)) == accepted


def test_no_service_is_asked_whether_a_secret_is_its_own():
    with transient_settings(settings(all_detectors())) as used:
        assert "AWSKeyDetector" in used.plugins
        assert [path for path in used.filters if "verification" in path or "allowlist" in path] == []


def test_a_password_of_a_test_is_made_up_and_a_key_is_not(repository, scanned):
    (repository / "tests").mkdir()
    (repository / "tests" / "test_a.py").write_text(f'{WORD} = "correct-horse-9"\n')
    assert scanned()[0] == 0
    (repository / "tests" / "test_b.py").write_text(f"key = '{KEY}'\n")
    assert "tests/test_b.py:1: AWS Access Key" in scanned()[1]


@pytest.mark.parametrize("name", ["code.py", "notes.md", "values.yaml", "data.json", "Makefile"])
def test_files_of_every_kind_are_looked_at(repository, scanned, name):
    (repository / name).write_text(f'key: "{KEY}"\n')
    assert f"{name}:1: AWS Access Key" in scanned()[1]


def test_detectors_are_left_out_only_where_they_would_find_nothing():
    accepted = read_accepted((ROOT / ACCEPTED).read_text())
    files = sorted({each.file for each in accepted if not each.file.startswith("tests/")} | {"README.md", "Makefile"})
    # Asked one by one, without a look at their texts before.
    collection = SecretsCollection(root=str(ROOT))
    with transient_settings(settings(all_detectors())):
        for file in files:
            collection.scan_file(file)
    expected = {Secret(file, each.type, each.secret_hash) for file, each in collection}
    assert expected
    assert set(secrets_in(ROOT, files)) == expected
