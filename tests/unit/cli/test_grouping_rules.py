"""`contexture grouping-rules`: a file of Cygnus' grouping rules is listed, checked and changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contexture.cli import app
from contexture.errors import ConfigurationError
from contexture.publications.cygnus_names.grouping import GroupingRules

TWO = """\
# rules of the fleet
{
  "grouping_rules": [
    {"id": 1, "fields": ["entityId", "entityType"], "regex": "car\\\\d+Car", "destination": "cars",
     "fiware_service_path": "/cars"},
    # old buses
    {"id": 7, "fields": ["servicePath"], "regex": "/bus.*", "destination": "buses", "fiware_service_path": "/bus"}
  ]
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.conf"
    path.write_text(TWO)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["grouping-rules", *map(str, arguments)])


def rules(file: Path) -> list[dict[str, object]]:
    return json.loads(run("list", file, "--json").stdout)["grouping_rules"]


def test_rules_are_listed_in_their_order(file: Path) -> None:
    assert run("list", file).stdout.splitlines() == [
        "id  fields               regex      destination  service path",
        "1   entityId+entityType  car\\d+Car  cars         /cars",
        "7   servicePath          /bus.*     buses        /bus",
    ]


def test_a_rule_is_added_at_the_end_with_the_next_id(file: Path) -> None:
    done = run(
        "add", file, "--fields", "entityType", "--regex", "Tram", "--destination", "trams", "--service-path", "/t"
    )

    assert done.stdout.startswith("rule 8 is added; the file has 3 now: entityType ~ Tram to trams on /t\n")
    assert "1 comment lines between the rules are gone" in done.stdout
    assert [rule["id"] for rule in rules(file)] == [1, 7, 8]
    assert file.read_text().startswith("# rules of the fleet\n")
    assert [rule.destination for rule in GroupingRules.from_json(file.read_text()).rules] == ["cars", "buses", "trams"]


def test_the_first_rule_makes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new.conf"

    run("add", file, "--fields", "entityId", "--regex", ".*", "--destination", "all", "--service-path", "/")

    assert rules(file) == [
        {"id": 1, "fields": ["entityId"], "regex": ".*", "destination": "all", "fiware_service_path": "/"}
    ]


def test_an_update_changes_what_is_given_and_keeps_id_and_place(file: Path) -> None:
    assert "rule 1 is changed" in run("update", file, 1, "--destination", "automobiles").stdout

    assert rules(file)[0] == {
        "id": 1,
        "fields": ["entityId", "entityType"],
        "regex": "car\\d+Car",
        "destination": "automobiles",
        "fiware_service_path": "/cars",
    }


def test_a_deleted_rule_is_gone(file: Path) -> None:
    assert json.loads(run("delete", file, 1, "--json").stdout)["rules"] == 1
    assert [rule["id"] for rule in rules(file)] == [7]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("delete", "FILE", 3), "has no grouping rule 3. Next: choose one of its ids: 1, 7"),
        (("update", "FILE", 1), "nothing is to be changed"),
        (("update", "FILE", 1, "--regex", "["), "["),
        (("update", "FILE", 1, "--fields", "entityName"), "names the field 'entityName'"),
        (("update", "FILE", 1, "--service-path", "cars"), "no leading slash (code 4)"),
        (("update", "FILE", 1, "--destination", ""), "has no content in destination (code 2)"),
    ],
)
def test_a_change_that_would_be_wrong_leaves_the_file_as_it_was(
    file: Path, arguments: tuple[object, ...], error: str
) -> None:
    result = run(*(file if each == "FILE" else each for each in arguments))

    assert isinstance(result.exception, ConfigurationError)
    assert error in str(result.exception)
    assert file.read_text() == TWO
    assert [each.name for each in file.parent.iterdir()] == ["rules.conf"]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"id": 7', '"id": 1', "two grouping rules with the id 1"),
        ('"destination": "buses"', '"destination": "buses", "comment": "x"', "the unknown member 'comment'"),
        ('"id": 7', '"id": "7"', "no whole number as id"),
    ],
)
def test_a_check_is_as_strict_as_cygnus_rest_interface(file: Path, old: str, new: str, error: str) -> None:
    assert run("check", file).stdout == "2 rules are right\n"
    file.write_text(TWO.replace(old, new))

    assert error in str(run("check", file).exception)
