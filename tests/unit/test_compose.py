"""docker-compose.yaml without a container engine: each thing it names exists, here or in the image it is asked of.

What only a running container can show (that an image starts, that services reach each other) is not shown here.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from contexture.cli import COMMANDS
from contexture.kafka.topics import DEFAULT_COPIES
from contexture.operations.pools import POOLS
from contexture.publications import NgsiPublication, discover
from contexture.sending.size_limits import topic_spec
from fakes.folder_store import folder_store

ROOT = Path(__file__).parents[2]
MAIL_CONNECTION = "contexture_mail"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = {name for name, service in SERVICES.items() if service["image"].startswith("contexture:")}
BUILD: dict[str, Any] = SERVICES["airflow-init"]["build"]
ENDS_BY_ITSELF = {"airflow-init"}

# Programs of the images that are not ours, and of Debian in ours.
OF_IMAGES = {
    "apache/kafka": {"exec"},
    "postgres": {"pg_isready"},
    "redis": {"sh", "umask", "echo", "exec", "redis-server", "redis-cli"},
    "mongo": {"exec"},
    "fiware/orion": {"curl", "-dbURI"},
    "sdmxio/fmr-mysql": {"curl"},
    "chrislusf/seaweedfs": {"server", "wget"},
    "contexture": {"bash", "umask", "python"},
}
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:?[-?][^}]*)?\}")


def texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from (*texts(key), *texts(value))
    elif isinstance(node, list):
        for item in node:
            yield from texts(item)
    elif isinstance(node, str):
        yield node


def image_of(name: str) -> str:
    return SERVICES[name]["image"].rsplit(":", 1)[0]


def environment_of(name: str) -> dict[str, str]:
    return SERVICES[name].get("environment", {})


def commands_of(name: str) -> Iterator[list[str]]:
    """Every simple command that a service's container runs, its health check's included."""
    service = SERVICES[name]
    command, check = service.get("command", []), service.get("healthcheck", {}).get("test", [])
    for words in (command, check[1:] if check[:1] == ["CMD"] else ["sh", "-c", *check[1:]]):
        if len(words) == 3 and words[1] in {"-c", "-ec"} and words[0] in {"sh", "bash"}:
            for line in re.split(r"\n|; (?=umask|echo|exec)", words[2]):
                if line.strip():
                    yield shlex.split(line.split(" > ")[0])
        elif words and words != ["sh", "-c"]:
            yield list(words)


def all_commands() -> list[tuple[str, list[str]]]:
    return [(name, words) for name in SERVICES for words in commands_of(name)]


def scripts() -> set[str]:
    """Programs that the distributions of this environment install: entry points, and those of the pyspark wheel."""
    return {script.name for script in entry_points(group="console_scripts")} | {"spark-class", "spark-submit"}


def airflow_source(relative: str) -> str:
    # Importing Airflow takes seconds; its files declare the same.
    (folder,) = find_spec("airflow").submodule_search_locations or []
    return (Path(folder) / relative).read_text()


def airflow_commands() -> set[str]:
    calls = (node for node in ast.walk(ast.parse(airflow_source("cli/cli_config.py"))) if isinstance(node, ast.Call))
    named = (keyword.value for call in calls for keyword in call.keywords if keyword.arg == "name")
    return {value.value for value in named if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def env_example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_file_follows_the_compose_schema():
    schema = json.loads((ROOT / "tests/samples/compose/compose-spec.json").read_text())
    errors = Draft202012Validator(schema).iter_errors(COMPOSE)
    assert [f"{'/'.join(map(str, error.path))}: {error.message}" for error in errors] == []


def test_the_schema_refuses_what_is_no_compose_file():
    schema = json.loads((ROOT / "tests/samples/compose/compose-spec.json").read_text())
    assert not Draft202012Validator(schema).is_valid({"services": {"a": {"imagine": "x"}}})


def test_the_main_services_are_there():
    assert set(SERVICES) == {
        *("kafka-1", "kafka-2", "kafka-3", "postgres", "redis", "spark-master", "spark-worker", "mongo", "orion"),
        *("airflow-init", "airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"),
        *("airflow-worker", "airflow-worker-2", "registry", "object-store"),
    }


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_has_a_version(name):
    assert re.fullmatch(r"[a-z/-]+:[0-9][\w.-]*", SERVICES[name]["image"])


def test_ports_are_published_on_the_loopback_address_alone_and_once():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    defaults = [re.search(r":-(\d+)}", port)[1] for port in ports]
    assert len(set(defaults)) == len(defaults) == 7


def test_variables_are_those_of_the_example():
    used = {found[1]: found[2] or "" for text in texts(COMPOSE) for found in VARIABLE.finditer(text)}
    example = env_example()
    assert set(used) == set(example)
    defaults = {name: given[2:] for name, given in used.items() if given.startswith(":-")}
    assert defaults == {name: example[name] for name in defaults}


def test_the_example_holds_no_secret_and_the_file_insists_on_each():
    secrets = {name: value for name, value in env_example().items() if re.search("KEY|SECRET|PASSWORD", name)}
    assert len(secrets) == 8
    assert set(secrets.values()) == {""}
    for name in secrets:
        given = {found[2] for text in texts(COMPOSE) for found in VARIABLE.finditer(text) if found[1] == name}
        assert given == {":?fill in .env"}, name


def test_services_depend_on_services_that_can_become_so():
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            assert how.get("required", True) == ("profiles" not in SERVICES[other])
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
            else:
                assert (how["condition"], other) == ("service_completed_successfully", "airflow-init")


@pytest.mark.parametrize("name", SERVICES)
def test_what_stays_up_has_a_health_check(name):
    assert ("healthcheck" in SERVICES[name]) == (name not in ENDS_BY_ITSELF)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), all_commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_command_is_a_program_of_its_image(name, words):
    program = words[0]
    known = OF_IMAGES[image_of(name)] | (scripts() if name in OURS else set())
    assert program in known, words
    if words[0] == "contexture":
        assert words[1] in COMMANDS
    if words[0] == "airflow":
        providers = {"celery", "worker"} if words[1] == "celery" else set()
        subcommands = [word for word in words[1:3] if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
        assert set(subcommands) <= airflow_commands() | providers
    if "-c" in words and program == "python":
        compile(words[words.index("-c") + 1], name, "exec")


def test_celery_is_installed_by_the_image():
    assert "--extra celery" in BUILD["args"]["EXTRAS"]
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["celery"]
    assert any(each.startswith("apache-airflow-providers-celery") for each in extra)


def test_the_image_is_built_once_and_names_its_licences():
    assert [name for name, service in SERVICES.items() if "build" in service] == ["airflow-init"]
    assert {SERVICES[name]["image"] for name in OURS} == {"contexture:0.1.0"}
    assert "NOTICE" in DOCKERFILE


def test_the_image_has_drivers_for_the_database():
    # Airflow opens PostgreSQL twice: by psycopg2, as its address says, and by asyncpg beside it.
    address = environment_of("airflow-scheduler")["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert address.startswith("postgresql+psycopg2://")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["celery"]
    drivers = {re.match(r"[\w-]+", requirement)[0] for requirement in extra}
    assert {"psycopg2-binary", "asyncpg"} <= drivers, 'pyproject.toml: add "asyncpg>=0.30" to the extra celery'


def test_java_classes_of_commands_are_in_the_jars_of_pyspark():
    (folder,) = find_spec("pyspark").submodule_search_locations or []
    assert list((Path(folder) / "jars").glob("spark-core_*.jar"))
    classes = {words[1] for _, words in all_commands() if words[0] == "spark-class"}
    assert classes == {"org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"}


def test_named_volumes_and_configs_are_declared_and_used():
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    named = {source for source, *_ in mounts if not source.startswith(".")}
    assert named == set(COMPOSE["volumes"])
    configs = {each["source"] for service in SERVICES.values() for each in service.get("configs", [])}
    assert configs == set(COMPOSE["configs"])


def test_mounted_folders_exist_here_and_where_the_image_expects_them():
    mounts = [mount.split(":") for name in OURS for mount in SERVICES[name].get("volumes", [])]
    for source, target, *_ in mounts:
        assert not source.startswith(".") or (ROOT / source).is_dir(), source
        made_by_us = target in DOCKERFILE or (ROOT / target.removeprefix("/opt/contexture/")).is_dir()
        assert made_by_us, target


def test_the_home_is_shared_by_all_who_read_and_write_it():
    home = re.search(r"CONTEXTURE_HOME=(\S+)", DOCKERFILE)[1]
    sharing = {name for name in SERVICES if f"contexture-home:{home}" in SERVICES[name].get("volumes", [])}
    assert sharing == OURS - {"spark-master"}


def test_what_the_dockerfile_copies_exists_and_reaches_the_builder():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [word for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.M) for word in line.split()]
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert set(copied) == allowed


def test_the_build_arguments_are_those_of_the_dockerfile():
    assert (ROOT / BUILD["context"] / BUILD["dockerfile"]).is_file()
    assert set(BUILD["args"]) <= set(re.findall(r"^ARG (\w+)", DOCKERFILE, re.M))


def test_the_dockerfile_takes_the_uv_of_the_lock():
    uv = re.search(r"^ARG UV_VERSION=(\S+)", DOCKERFILE, re.M)[1]
    assert f'"uv=={uv}"' in (ROOT / "pyproject.toml").read_text()


def test_options_of_airflow_exist():
    options = yaml.safe_load(airflow_source("config_templates/config.yml"))
    # Where an option is read without being declared, and those of the provider that only the image has.
    undeclared = {("core", "simple_auth_manager_users"), ("core", "simple_auth_manager_passwords_file")}
    given = {name for service in OURS for name in environment_of(service) if name.startswith("AIRFLOW__")}
    for name in given:
        _, section, option = name.lower().split("__")
        known = option in options.get(section, {}).get("options", {}) or (section, option) in undeclared
        assert known or section == "celery", name


def test_all_airflow_services_share_one_environment():
    first, *others = (
        {key: value for key, value in environment_of(name).items() if key != "SPARK_LOCAL_HOSTNAME"}
        for name in SERVICES
        if name.startswith("airflow-") and name != "airflow-init"
    )
    assert all(other == first for other in others)


def test_connections_lead_to_services_and_are_those_of_the_publications():
    environment = environment_of("airflow-worker")
    named = {"spark_default"}
    for loaded in discover(ROOT / "include" / "publications"):
        assert loaded.publication is not None
        named |= {loaded.publication.source.connection, loaded.publication.publish.connection}
        if isinstance(loaded.publication, NgsiPublication):
            named.add(loaded.publication.source.notifier_connection)
    named.add(MAIL_CONNECTION)
    connections = {f"AIRFLOW_CONN_{name.upper()}": name for name in named}
    assert {name for name in environment if name.startswith("AIRFLOW_CONN_")} == set(connections)
    kafka = json.loads(environment["AIRFLOW_CONN_KAFKA_DEFAULT"])["extra"]["bootstrap.servers"]
    assert kafka == "kafka-1:9092,kafka-2:9092,kafka-3:9092"
    for source in ("CONTEXT_BROKER", "REGISTRY"):
        assert json.loads(environment[f"AIRFLOW_CONN_{source}"])["host"] in SERVICES
    spark = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert spark["host"].removeprefix("spark://") in SERVICES


def test_addresses_in_urls_are_services():
    hosts = {host for text in texts(SERVICES) for host in re.findall(r"(?:://|@)([a-z][\w-]*):\d+", text)}
    assert hosts - set(SERVICES) == {"localhost"}


def test_three_brokers_form_one_cluster():
    brokers = [environment_of(f"kafka-{number}") for number in (1, 2, 3)]
    assert [broker["KAFKA_NODE_ID"] for broker in brokers] == ["1", "2", "3"]
    assert {broker["CLUSTER_ID"] for broker in brokers} == {"yF0jQ2nhQx6hYk3o0bZ1Tw"}
    assert {broker["KAFKA_CONTROLLER_QUORUM_VOTERS"] for broker in brokers} == {
        "1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"
    }
    for number, broker in enumerate(brokers, 1):
        listeners = {listener.split(":")[0] for listener in broker["KAFKA_LISTENERS"].split(",")}
        mapped = {pair.split(":")[0] for pair in broker["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}
        assert listeners == mapped == {"INTERNAL", "CONTROLLER", "HOST"}
        assert broker["KAFKA_ADVERTISED_LISTENERS"].startswith(f"INTERNAL://kafka-{number}:9092,HOST://127.0.0.1:")


def test_what_is_acknowledged_outlasts_the_loss_of_a_broker():
    for number in (1, 2, 3):
        broker = environment_of(f"kafka-{number}")
        assert (broker["KAFKA_DEFAULT_REPLICATION_FACTOR"], broker["KAFKA_MIN_INSYNC_REPLICAS"]) == ("3", "2")


def test_the_pools_are_made_before_anything_is_scheduled():
    script = SERVICES["airflow-init"]["command"][2]
    assert "contexture pools > /tmp/pools.json" in script
    assert script.index("db migrate") < script.index("pools import /tmp/pools.json")
    assert POOLS
    waiting = [name for name in SERVICES if name.startswith("airflow-") and name != "airflow-init"]
    direct = {name for name in waiting if "airflow-init" in SERVICES[name]["depends_on"]}
    assert direct | {name for name in waiting if "airflow-api-server" in SERVICES[name]["depends_on"]} == set(waiting)


def test_spark_finds_its_way_back_to_the_driver():
    defaults = dict(line.split() for line in COMPOSE["configs"]["spark-defaults"]["content"].splitlines())
    assert defaults["spark.driver.bindAddress"] == "0.0.0.0"
    workers = {name: service for name, service in SERVICES.items() if service.get("command", [""])[-1] == "worker"}
    assert set(workers) == {"airflow-worker", "airflow-worker-2"}
    for name, worker in workers.items():
        assert worker["hostname"] == environment_of(name)["SPARK_LOCAL_HOSTNAME"] == name
        (config,) = worker["configs"]
        assert config["target"] == f"{environment_of(name)['SPARK_CONF_DIR']}/spark-defaults.conf"


def test_the_home_may_be_on_the_object_store_for_all_who_read_and_write_it():
    (store,) = [name for name, service in SERVICES.items() if service.get("profiles") == ["s3"]]
    for name in OURS - {"spark-master"}:
        environment = environment_of(name)
        assert environment["CONTEXTURE_HOME"] == "${CONTEXTURE_HOME:-/var/lib/contexture}"
        assert environment["AWS_ENDPOINT_URL"] == f"http://{store}:8333"
    identity = json.loads(COMPOSE["configs"]["object-store"]["content"])["identities"][0]
    environment = environment_of("spark-worker")
    assert identity["credentials"] == [
        {"accessKey": environment["AWS_ACCESS_KEY_ID"], "secretKey": environment["AWS_SECRET_ACCESS_KEY"]}
    ]


def test_the_bucket_is_made_at_the_object_store(monkeypatch: pytest.MonkeyPatch):
    (line,) = [line for line in SERVICES["airflow-init"]["command"][2].splitlines() if "create_bucket" in line]
    program, option, code = shlex.split(line)
    assert (program, option) == ("python", "-c")
    with folder_store() as store:
        settings = {**environment_of("airflow-init"), "AWS_ENDPOINT_URL": store.url, "AWS_SECRET_ACCESS_KEY": "unused"}
        for name in (name for name in settings if name.startswith("AWS_")):
            monkeypatch.setenv(name, settings[name])
        for home in ("/var/lib/contexture", "s3://contexture/home"):
            monkeypatch.setenv("CONTEXTURE_HOME", home)
            exec(compile(code, "airflow-init", "exec"), {})
        assert store.buckets == {"contexture"}


def test_the_object_store_takes_room_for_what_it_holds_and_forgets_empty_folders():
    assert {"-master.volumePreallocate=false", "-s3.allowEmptyFolder=false"} <= set(SERVICES["object-store"]["command"])


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("kafka-1", "/var/lib/kafka/data"),
        ("postgres", "/var/lib/postgresql/data"),
        ("redis", "/data"),
        ("object-store", "/data"),
        ("mongo", "/data/db"),
        ("registry", "/var/lib/mysql"),
    ],
)
def test_what_a_service_stores_outlasts_its_container(name: str, folder: str):
    assert f"{name}-data:{folder}" in SERVICES[name]["volumes"]


def test_redis_writes_its_queue_into_the_volume():
    assert "--dir /data --appendonly yes" in SERVICES["redis"]["command"][2]


def test_brokers_have_a_limit_of_memory():
    assert {environment_of(f"kafka-{number}")["KAFKA_HEAP_OPTS"] for number in (1, 2, 3)} == {"-Xms256m -Xmx512m"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ENDS_BY_ITSELF))
def test_a_health_check_starts_neither_java_nor_airflow_and_has_time_under_load(name: str):
    check = SERVICES[name]["healthcheck"]
    program = check["test"][1].split()[0]
    assert program in {"python", "bash", "curl", "wget", "pg_isready", "redis-cli"}
    assert not re.search(r"import airflow|from airflow|\.sh\b|airflow\.providers", " ".join(check["test"]))
    if name not in {"postgres", "redis", "object-store", "orion"}:
        assert int(check["timeout"].removesuffix("s")) >= 20
        assert int(check["start_period"].removesuffix("s")) >= 120


def test_commands_in_the_containers_know_where_airflow_is():
    assert environment_of("airflow-worker")["CONTEXTURE_AIRFLOW_URL"] == "http://airflow-api-server:8080"


def test_notifiers_have_a_secret_and_mail_is_optional():
    notify = json.loads(environment_of("airflow-api-server")["AIRFLOW_CONN_CONTEXTURE_NOTIFY"])
    assert notify == {"conn_type": "generic", "password": "${NOTIFY_SECRET:?fill in .env}"}
    assert environment_of("airflow-worker")["AIRFLOW_CONN_CONTEXTURE_MAIL"] == "${MAIL_CONNECTION:-}"
    assert environment_of("airflow-worker")["CONTEXTURE_MAIL_TO"] == "${MAIL_TO:-}"


def test_the_file_with_secrets_stays_out_of_version_control_and_of_the_image():
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"


def test_topics_of_the_shipped_publications_are_on_as_many_brokers_as_these_say():
    for loaded in discover(ROOT / "include" / "publications"):
        assert loaded.publication is not None
        assert topic_spec(loaded.publication, "any").replication_factor == DEFAULT_COPIES
    assert environment_of("kafka-1")["KAFKA_DEFAULT_REPLICATION_FACTOR"] == "3"


def test_the_operational_tables_are_in_no_file_that_containers_share():
    assert environment_of("airflow-worker")["CONTEXTURE_DATABASE"].startswith("postgresql+psycopg2://")
