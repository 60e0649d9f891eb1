"""deploy/helm/values.yaml without a cluster: keys that Airflow's chart documents, settings that Airflow has, no secret.

The chart's own schema is in none of the registries that the project uses, so its keys are written down here.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "deploy/helm/values.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load(TEXT)

# As the chart's page "Parameters reference" has them: what may stand under a key that we use.
POD = {"replicas", "resources", "logGroomerSidecar"}
DOCUMENTED: dict[str, set[str] | None] = {
    "airflowVersion": None,
    "airflowHome": None,
    "executor": None,
    "fernetKeySecretName": None,
    "apiSecretKeySecretName": None,
    "jwtSecretName": None,
    "env": None,
    "secret": None,
    "extraEnv": None,
    "extraConfigMaps": None,
    "createUserJob": {"enabled", "defaultUser"},
    "volumes": None,
    "volumeMounts": None,
    "config": None,
    "images": {"airflow"},
    "data": {"metadataSecretName", "resultBackendSecretName", "brokerUrlSecretName"},
    "postgresql": {"enabled"},
    "redis": {"enabled"},
    "workers": POD | {"persistence", "terminationGracePeriodSeconds"},
    "scheduler": POD,
    "dagProcessor": {"enabled", "resources", "logGroomerSidecar"},
    "triggerer": POD | {"persistence"},
    "apiServer": POD,
    "dags": {"persistence", "gitSync"},
    "logs": {"persistence"},
}


def airflow_options() -> dict[str, set[str]]:
    # Importing Airflow takes seconds; its files declare the same.
    files = []
    for package, relative in (
        ("airflow", "config_templates/config.yml"),
        ("airflow.providers", "celery/get_provider_info.py"),
    ):
        found = find_spec(package)
        for folder in (found.submodule_search_locations or []) if found else []:
            files += [Path(folder) / relative]
    sections = yaml.safe_load(next(file for file in files if file.suffix == ".yml").read_text())
    return {name: set(section["options"]) for name, section in sections.items()}


def test_every_key_is_one_that_the_chart_documents() -> None:
    unknown = {key for key in VALUES if key not in DOCUMENTED}
    for key, known in DOCUMENTED.items():
        if known is not None:
            unknown |= {f"{key}.{name}" for name in VALUES[key] if name not in known}
    assert unknown == set()


def test_every_setting_is_one_of_airflow() -> None:
    options = airflow_options()
    # Celery's belong to a provider that is no part of this environment; the compose file has them too.
    wrong = [
        f"{section}.{name}"
        for section, settings in VALUES["config"].items()
        if section != "celery"
        for name in settings
        if name not in options.get(section, set())
    ]
    assert wrong == []


def test_our_variables_are_documented() -> None:
    page = (ROOT / "docs/reference/environment-variables.md").read_text()
    ours = {each["name"] for each in VALUES["env"]} | {each["envName"] for each in VALUES["secret"]}
    assert [name for name in sorted(ours) if name.startswith("CONTEXTURE_") and f"`{name}`" not in page] == []


def test_it_is_the_version_of_airflow_that_the_project_pins() -> None:
    pinned = re.search(r'"apache-airflow==([0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned is not None
    assert VALUES["airflowVersion"] == pinned[1]


def test_the_folders_are_those_of_the_image() -> None:
    image = (ROOT / "Dockerfile").read_text()
    assert f"AIRFLOW_HOME={VALUES['airflowHome']}" in image
    assert f"AIRFLOW__CORE__DAGS_FOLDER={VALUES['config']['core']['dags_folder']}" in image
    assert f"AIRFLOW__CORE__PLUGINS_FOLDER={VALUES['config']['core']['plugins_folder']}" in image


def test_users_are_kept_by_what_the_image_has() -> None:
    # The chart's default is the FAB provider, and a job that makes a user by its commands.
    module = VALUES["config"]["core"]["auth_manager"].rpartition(".")[0]
    package = find_spec("airflow")
    assert package is not None
    folders = [Path(each) for each in package.submodule_search_locations or []]
    assert any((folder.parent / f"{module.replace('.', '/')}.py").is_file() for folder in folders)
    # The job is ruled by the one or by the other, as the chart's version has it.
    assert (VALUES["createUserJob"]["enabled"], VALUES["createUserJob"]["defaultUser"]["enabled"]) == (False, False)


@pytest.mark.parametrize("part", ["scheduler", "dagProcessor", "triggerer", "workers"])
def test_nothing_is_started_that_only_airflow_s_own_image_has(part: str) -> None:
    assert VALUES[part]["logGroomerSidecar"]["enabled"] is False
    # The chart's probes begin with it.
    assert "> /entrypoint && chmod 755 /entrypoint" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("word", ["password", "fernetKey:", "jwtSecret:", "apiSecretKey:", "BEGIN "])
def test_the_values_contain_no_secret(word: str) -> None:
    assert word not in TEXT


def test_what_is_secret_comes_from_secrets_and_the_page_says_how_to_make_each() -> None:
    page = (ROOT / "docs/how-to/move-to-a-cluster.md").read_text()
    names = {VALUES[key] for key in ("fernetKeySecretName", "apiSecretKeySecretName", "jwtSecretName")}
    names |= set(VALUES["data"].values()) | {each["secretName"] for each in VALUES["secret"]}
    assert [name for name in sorted(names) if f"generic {name}" not in page] == []
    secret = {each["envName"] for each in VALUES["secret"]}
    assert {"AIRFLOW_CONN_KAFKA_DEFAULT", "AWS_SECRET_ACCESS_KEY", "CONTEXTURE_DATABASE"} <= secret


def test_sparks_driver_runs_beside_the_task() -> None:
    (spark,) = [each["value"] for each in VALUES["env"] if each["name"] == "AIRFLOW_CONN_SPARK_DEFAULT"]
    assert yaml.safe_load(spark) == {"conn_type": "spark", "host": "spark://spark-master", "port": 7077}
