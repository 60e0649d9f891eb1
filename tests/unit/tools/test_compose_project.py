"""What `make compose-test` needs before it starts anything: values, an engine, and images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from contexture_sandbox.stack import project_folder
from tools.compose.project import find_obstacle, make_environment
from tools.images.recipes import APPLICATION, BASE, FILES, recipes

COMPOSE = (project_folder() / "docker-compose.yaml").read_text()
OTHERS = {"kafka-libs", "sandbox", "ca-certificates.crt", "python", "weed"}


def test_the_made_up_values_are_all_that_the_file_insists_on() -> None:
    insisted = set(re.findall(r"\$\{(\w+):\?", COMPOSE))
    values = make_environment(CONTEXTURE_HOME="s3://contexture/home")
    assert {name for name in insisted if not values.get(name)} == set()
    assert values["CONTEXTURE_HOME"] == "s3://contexture/home"
    ports = [value for name, value in values.items() if name.endswith("_PORT")]
    assert len(set(ports)) == len(ports) == 7


def test_without_an_engine_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_obstacle() == "no container engine answers `docker info`"


def test_every_image_that_is_not_ours_has_a_stand_in() -> None:
    named = {service["image"] for service in yaml.safe_load(COMPOSE)["services"].values()} - {APPLICATION}
    (base,) = re.findall(r"^FROM (\S+)", (project_folder() / "Dockerfile").read_text(), re.MULTILINE)
    assert {recipe.tag for recipe in recipes()} == named | {base}


def test_a_stand_in_copies_what_is_here_or_made() -> None:
    copied = {
        word
        for recipe in recipes()
        for line in recipe.lines
        if line.startswith("COPY")
        for word in line.split()[1:-1]
        if not word.startswith("--")
    }
    assert copied - OTHERS == {file.name for file in FILES.iterdir()}
    assert {recipe.base for recipe in recipes()} == {BASE, APPLICATION}
