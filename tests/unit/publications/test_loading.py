"""What a person sees who wrote something wrong into a publication file."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.publications import PublicationError, discover, load_publication_file, load_publications
from contexture.publications.loading import validate
from contexture.publications.validation_messages import all_leaves

MINIMAL = "name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: vehicles}\n"


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str, name: str = "vehicles.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def problems(path: Path) -> list[tuple[int, int, str, str, str]]:
    with pytest.raises(PublicationError) as raised:
        load_publication_file(path)
    return [(each.line, each.column, each.location, each.message, each.hint) for each in raised.value.problems]


def messages(path: Path) -> list[str]:
    return [f"{location}: {message}" for _, _, location, message, _ in problems(path)]


def test_a_minimal_file_has_every_documented_default(written):
    publication = load_publication_file(written(MINIMAL))
    assert publication.model_dump(mode="json") == {
        "name": "vehicles",
        "description": "",
        "schedule": None,
        "source": {
            "kind": "ngsi",
            "connection": "context_broker",
            "api": "ngsiv2",
            "flavour": "auto",
            "context": None,
            "service": "vehicles",
            "service_path": ["/#"],
            "types": [],
            "ids": [],
            "id_pattern": None,
            "type_pattern": None,
            "metadata_query": None,
            "query": None,
            "attributes": [],
            "georel": None,
            "geometry": None,
            "coords": None,
            "mode": "changes",
            "detect_deletions": True,
            "notifier_connection": "contexture_notify",
            "shrink_limit": {"share": 0.2, "count": 10, "beyond": "stop", "answer_hours": 24},
            "page_size": 1000,
            "overlap_seconds": 60,
            "walk_deadline_seconds": 3600,
            "suppress_unchanged": True,
            "parallel_readers": 2,
            "pause_milliseconds": 0,
        },
        "topics": {
            "naming": "cygnus",
            "cygnus_version": None,
            "data_model": "dm-by-entity",
            "enable_lowercase": False,
            "compat": "none",
            "enable_grouping": False,
            "grouping_rules": None,
            "grouping_rules_content": None,
            "enable_name_mappings": False,
            "name_mappings": None,
            "name_mappings_content": None,
            "collision": "warn",
            "topics": [],
            "partitions": 1,
            "replication_factor": None,
            "keep": "latest",
            "config": {},
            "max_new_topics": 5000,
            "max_broker_partitions": 15000,
        },
        "batches": {"batch_size": 1, "batch_timeout": 30, "batch_ttl": 10, "batch_retry_intervals": [5000]},
        "message": {
            "format": "ngsiv2",
            "envelope": "none",
            "key": "identity",
            "encoder": None,
            "partition_key": "none",
        },
        "publish": {
            "connection": "kafka_default",
            "shards": 2,
            "partitioner": "murmur2",
            "transaction_records": 50000,
            "transactional_id_prefix": "tx",
            "on_failure": "stop",
            "dead_letter_topic": None,
            "max_dead_letters": 10,
            "broker_wait_seconds": 300,
            "broker_list": None,
            "zookeeper_endpoint": None,
        },
        "quality": {
            "rules": {},
            "expectations": [],
            "max_quarantined_share": 0.05,
            "minimum_entities": 1,
            "maximum_entities": None,
            "required_attributes": [],
            "attribute_types": {},
            "ranges": {},
            "fresh_within_seconds": None,
            "allowed_values": {},
            "stale_after_seconds": {},
            "syntax": "auto",
            "coerce_numbers": False,
            "allow_intervals": False,
            "models": {},
            "model_documents": {},
        },
        "resync": {"on_startup": "pending", "on_config_change": "full"},
        "retention": {"archive_days": 30},
        "notify": {"mail": [], "notifiers": [], "published_within_minutes": None},
    }


def test_what_was_dumped_as_json_is_read_back(written):
    publication = load_publication_file(written(MINIMAL + "topics: {config: {retention.ms: 5}}\n"))
    assert type(publication).model_validate_json(publication.model_dump_json()) == publication


def test_an_unknown_key_names_its_place_and_the_nearest_valid_key(written):
    text = "name: vehicles\nsource:\n  kind: ngsi\n  conection: broker\n  connection: broker\n  service: a\n"
    ((line, column, location, message, hint),) = problems(written(text))
    assert (line, column, location, message) == (4, 3, "source.conection", "unknown key `conection`")
    assert hint.startswith("did you mean `connection`? expected one of: kind, connection, mode,")


def test_keys_that_contexture_fills_in_are_not_offered(written):
    text = MINIMAL + "topics: {grouping_rule: a}\nquality: {model_document: {}}\n"
    names, quality = (problem[4] for problem in problems(written(text)))
    assert names.startswith("did you mean `grouping_rules`? expected one of: naming, ")
    assert "grouping_rules_content" not in names
    assert quality.startswith("expected one of: rules, ")
    assert "model_documents" not in quality


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("batch_size: 4", "`batches.batch_size`"),
        ("data_model: dm-by-service", "`topics.data_model`"),
        ("retentoin: {}", "`retention`"),
        ("cron: '@daily'", "`schedule`"),
        ("topics: {dataModel: dm-by-service}", "`data_model`"),
        ("topics: {schedule: '@daily'}", "`schedule (at the top level)`"),
    ],
)
def test_keys_of_other_sections_and_habits_lead_to_ours(written, line, suggestion):
    ((_, _, _, _, hint),) = problems(written(f"{MINIMAL}{line}\n"))
    assert hint.startswith(f"did you mean {suggestion}?")


def test_a_wrong_value_names_the_nearest_valid_one(written):
    assert problems(written(MINIMAL + "topics:\n  data_model: dm-by-entities\n")) == [
        (
            4,
            15,
            "topics.data_model",
            "'dm-by-entities' is not a value of `data_model`",
            "did you mean `dm-by-entity`? "
            "expected one of: dm-by-service, dm-by-service-path, dm-by-entity, dm-by-attribute",
        )
    ]


def test_all_problems_of_a_file_are_reported_together_in_the_order_of_the_file(written):
    text = """\
name: Vehicles
schedule: "* * * *"
source:
  kind: ngsi
  service: vehi-cles
  service_path: [/a, b]
  page_size: "10"
topics: {naming: fixed, enable_grouping: true}
message: {key: none}
batches: {batch_size: 0}
"""
    assert [(line, location) for line, _, location, _, _ in problems(written(text))] == [
        (1, "name"),
        (2, "schedule"),
        (3, "source.connection"),
        (5, "source.service"),
        (6, "source.service_path[1]"),
        (7, "source.page_size"),
        (8, "topics.naming"),
        (8, "topics.enable_grouping"),
        (9, "message.key"),
        (9, "message.key"),
        (10, "batches.batch_size"),
    ]


def test_no_combination_is_reported_about_a_value_that_is_wrong_by_itself(written):
    assert messages(written(MINIMAL + "message: {key: none}\ntopics: {keep: lastest}\n")) == [
        "message.key: `key: none` with `detect_deletions: true`: a tombstone without a key deletes nothing",
        "topics.keep: 'lastest' is not a value of `keep`",
    ]


def test_the_error_reads_like_a_compilers(written):
    path = written(MINIMAL + "publish:\n\tshards: 2\n".replace("\t", "  ") + "  shard: 3\n")
    with pytest.raises(PublicationError) as raised:
        load_publication_file(path)
    assert str(raised.value) == (
        f"{path}: 1 problem\n"
        "\n"
        f"{path}:5:3: error: unknown key `shard`\n"
        " 5 |   shard: 3\n"
        "   |   ^^^^^\n"
        "   = did you mean `shards`? expected one of: connection, shards, partitioner, "
        "transactional_id_prefix, on_failure, dead_letter_topic, max_dead_letters, broker_wait_seconds, broker_list, "
        "zookeeper_endpoint, transaction_records\n"
        "\n"
        "Next: change the marked lines, then run `contexture check` on the file"
    )


def test_an_error_survives_pickling_with_its_problems(written):
    with pytest.raises(PublicationError) as raised:
        load_publication_file(written("name: x\n"))
    copy = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(copy, PublicationError)
    assert copy.problems == raised.value.problems
    assert str(copy) == str(raised.value)


@pytest.mark.parametrize("key", ["password", "sasl.password", "api_key", "access_token", "client-secret"])
def test_a_secret_is_sent_to_the_connection_and_never_shown(written, key):
    path = written(f"{MINIMAL}publish:\n  {key}: hunter2\n")
    with pytest.raises(PublicationError) as raised:
        load_publication_file(path)
    assert "a secret belongs in an Airflow connection" in str(raised.value)
    assert "hunter2" not in f"{raised.value}{raised.value!r}{raised.value.as_dict()}"


def test_a_secret_in_topic_configuration_is_refused(written):
    (message,) = messages(written(MINIMAL + "topics: {config: {ssl.keystore.password: hunter2}}\n"))
    assert message.endswith("looks like a secret; a secret belongs in an Airflow connection")
    assert "hunter2" not in message


def test_an_address_with_a_password_in_place_of_a_connection_id_is_not_repeated(written):
    text = MINIMAL.replace("context_broker", "http://me:hunter2@host:1026")
    with pytest.raises(PublicationError) as raised:
        load_publication_file(written(text))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("- a\n- b\n", ": a publication is not a list or a single value"),
        ("name: [a\n", ": not readable as YAML: did not find expected ',' or ']' while parsing a flow sequence"),
        (MINIMAL + "---\nname: b\n", ": a second document begins here"),
        (MINIMAL + "topics: &a {}\n", ": anchors and aliases (& and *) are not supported"),
        (MINIMAL + "description: !!python/name:os.system\n", ": the tag tag:yaml.org,2002:python/name:os.system"),
        ("name: a\n? [b]\n: c\n", ": a key must be a word"),
        ("[" * 100_000, ": nested deeper than 20 levels"),
        ("a: " + "x" * 300_000, ": the file is too large for a publication"),
        ("name: \x00\n", ": not readable as YAML"),
    ],
)
def test_text_that_is_no_publication_gives_one_clear_problem(written, text, message):
    (found,) = messages(written(text))
    assert found.startswith(message)


def test_bytes_that_are_not_utf8_are_refused(written, tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9\n".encode("latin-1"))
    assert messages(path) == [": byte 9 is not UTF-8"]


def test_a_missing_file_is_a_problem_and_no_traceback(tmp_path):
    assert messages(tmp_path / "nothing.yaml") == [": the file cannot be read: No such file or directory"]


def test_a_repeated_key_is_reported_with_the_other_problems(written):
    path = written(MINIMAL + "message: {format: ngsiv2}\nmessage: {format: ngsiv3}\n")
    assert messages(path) == [
        ": the key `message` is there twice, first on line 3",
        "message.format: 'ngsiv3' is not a value of `format`",
    ]


def test_off_is_a_word_and_not_false(written):
    publication = load_publication_file(written(MINIMAL + "quality: {rules: {stale: off, type-drift: error}}\n"))
    assert publication.quality.rules == {"stale": "off", "type-drift": "error"}


@pytest.mark.parametrize("word", ["yes", "on", '"true"', "1"])
def test_only_true_and_false_are_flags(written, word):
    (_, _, location, _, hint), *_ = problems(written(f"{MINIMAL}topics: {{enable_lowercase: {word}}}\n"))
    assert (location, hint) == ("topics.enable_lowercase", "expected true or false")


def test_cygnus_parameters_without_effect_are_accepted_with_a_note(written):
    text = MINIMAL + "publish:\n  broker_list: localhost:9092\n  zookeeper_endpoint: localhost:2181\n"
    (loaded,) = discover(written(text))
    assert loaded.error is None
    assert [(note.line, note.severity, note.message, note.hint) for note in loaded.notes] == [
        (
            4,
            "note",
            "`broker_list` of Cygnus has no effect",
            "the brokers are `bootstrap.servers` of the Airflow connection named by `publish.connection`",
        ),
        (
            5,
            "note",
            "`zookeeper_endpoint` of Cygnus has no effect",
            "Kafka 4 has no ZooKeeper; topics are made through the brokers",
        ),
    ]


def test_a_service_in_upper_case_is_read_in_lower_case_with_a_note(written):
    (loaded,) = discover(written(MINIMAL.replace("service: vehicles", "service: Vehicles")))
    assert loaded.publication is not None
    assert loaded.publication.source.service == "vehicles"
    assert [note.message for note in loaded.notes] == ["the service 'Vehicles' is read as 'vehicles'"]


def test_a_service_path_inside_another_one_is_left_out_with_a_note(written):
    (loaded,) = discover(written(MINIMAL.replace("vehicles}", 'vehicles, service_path: ["/a", "/#", "/a/", "/b"]}')))
    assert loaded.publication is not None
    assert loaded.publication.source.service_path == ("/#",)
    assert [note.message for note in loaded.notes] == [
        "the service path /a is inside another one: it is read once, with that one",
        "the service path /b is inside another one: it is read once, with that one",
    ]


def test_one_bad_file_does_not_hide_the_others(written, tmp_path):
    written(MINIMAL, "good.yaml")
    written("name: [", "bad.yaml")
    written(MINIMAL.replace("name: vehicles", "name: other"), "other.yml")
    written("not a publication", "README.md")
    loaded = discover(tmp_path)
    assert [(each.path.name, each.error is None) for each in loaded] == [
        ("bad.yaml", False),
        ("good.yaml", True),
        ("other.yml", True),
    ]


def test_loading_a_folder_raises_the_problems_of_all_files(written, tmp_path):
    written("name: A\n", "a.yaml")
    written("name: B\n", "b.yaml")
    with pytest.raises(PublicationError) as raised:
        load_publications(tmp_path)
    assert [(each.path.name, each.location) for each in raised.value.problems] == [
        ("a.yaml", "source"),
        ("a.yaml", "name"),
        ("b.yaml", "source"),
        ("b.yaml", "name"),
    ]


def test_a_copy_never_takes_over_the_name_of_the_file_called_after_its_publication(written, tmp_path):
    written(MINIMAL, "a-copy.yaml")
    written(MINIMAL, "vehicles.yaml")
    copy, original = discover(tmp_path)
    assert original.error is None
    assert copy.publication is None
    assert copy.error is not None
    (problem,) = copy.error.problems
    assert (problem.line, problem.column) == (1, 7)
    assert problem.message == f"the name 'vehicles' is taken by {tmp_path / 'vehicles.yaml'}"


def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError, match="neither a file nor a folder"):
        discover(tmp_path / "nothing")


def test_a_folder_that_may_not_be_read_is_a_configuration_error_and_not_an_empty_one(tmp_path, monkeypatch):
    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(ConfigurationError) as error:
        discover(tmp_path)
    assert error.value.message == f"{tmp_path} cannot be read: Permission denied"
    assert error.value.next_step == "check the path and its permissions"


WORDS = st.sampled_from(
    "name source topics quality message kind rules ngsi null off 1e9 : - [ ] { } , &a *a ' \" | > !!x ? #".split()  # noqa: SIM905
)
SPACES = st.sampled_from((" ", ": ", "- ", "\n", "\n  ", "\t", "\u2028", "\x85", "\u00e9"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(st.lists(WORDS | SPACES, max_size=40).map("".join), st.text(max_size=60)), st.booleans())
def test_no_text_makes_loading_fail_in_another_way(tmp_path, text, after_a_good_start):
    path = tmp_path / "any.yaml"
    path.write_bytes((MINIMAL + text if after_a_good_start else text).encode("utf-8", "surrogatepass"))
    (loaded,) = discover(path)
    assert (loaded.publication is None) == (loaded.error is not None)
    if loaded.error is not None:
        assert loaded.error.problems
        assert str(path) in str(loaded.error)


SOMETHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
PATHS = st.sampled_from([*sorted(all_leaves()), ("source",), ("topics",), ("quality",), ("source", "shrink_limit")])


@given(st.dictionaries(PATHS, SOMETHING, max_size=4))
def test_no_value_makes_validation_fail_in_another_way(values):
    data: dict = {"name": "a", "source": {"kind": "ngsi", "connection": "b", "service": "c"}}
    for path, value in values.items():
        place = data
        for section in path[:-1]:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                break
        else:
            place[path[-1]] = value
    publication, findings = validate(data)
    assert (publication is None) == bool(findings)


def test_columns_count_characters_and_not_bytes(written):
    ((line, column, *_),) = problems(written(MINIMAL + 'quality: {attribute_types: {"é": "☃"}, ruls: {}}\n'))
    assert (line, column) == (3, 40)
