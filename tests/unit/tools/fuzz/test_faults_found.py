"""Input that broke a parser once, found by fuzzing and by looking for its like: each ends in an error of ours, soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication, records
from contexture.errors import ConfigurationError, ContextureError, DefectError, RetriableError
from contexture.kafka.key_stores import Keytool
from contexture.operations.airflow_client import AirflowCredentials
from contexture.publications.cygnus_names import GroupingRules, NameMappings
from contexture.publications.problems import without_secrets
from contexture.records.cloudevents import CloudEventError, decode
from contexture.records.messages.envelopes import message_in
from contexture.sending.ledger import LedgerEntry
from contexture.sources.http.connection import BrokerConnection, ConnectionFields, broker_connection
from contexture.sources.http.errors import IncompleteReplyError, retry_after_seconds
from contexture.sources.http.tokens import TokenRequest, Tokens
from contexture.sources.http.transport import date_of
from contexture.sources.ngsi.history import TemporalPaging, range_end
from contexture.sources.ngsi.json_schema import compiled
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.sdmx.formats import json_format
from contexture.sources.sdmx.registry.log import parse_feed, rows_in
from contexture.sources.sdmx.registry.transport import DownloadedFile, is_error_message
from contexture.storage.home import Home
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import SHARD_FILE

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FOLDER = PublicationPaths("vehicles")
DEEP = b"[" * 100_000


@contextmanager
def soon() -> Iterator[None]:
    """The block takes little CPU time, which is a fifth of a second at most here; before, these took minutes."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 15


def answering(**answer: object) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(200, **answer))  # type: ignore[arg-type]


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.mark.parametrize(
    "date", ["Fri, 31 Dec 9999 23:59:59 -0500", "Thu, 01 Jan 2026 12:00:00 +99999999999999", "Thu, 01 Jan 99999"]
)
def test_a_date_beyond_all_years_is_none(date: str) -> None:
    assert date_of(httpx.Headers({"date": date})) is None


def test_a_wait_until_a_date_beyond_all_years_is_none() -> None:
    assert retry_after_seconds("Thu, 01 Jan 2026 12:00:00 +99999999999999") == 0.0


def test_a_total_of_thousands_of_digits_is_no_total() -> None:
    transport = answering(json=[], headers={"Fiware-Total-Count": "9" * 5_000})
    with (
        NgsiV2Client(BrokerConnection("http://broker"), "", transport=transport) as broker,
        pytest.raises(ConfigurationError, match="does not report how many"),
    ):
        broker.count(EntityQuery(types=("car",)))


def test_a_deep_list_of_types_is_no_list() -> None:
    with (
        NgsiLdClient(BrokerConnection("http://broker"), "", transport=answering(content=DEEP)) as broker,
        pytest.raises(ConfigurationError, match="list of types"),
    ):
        broker.types()


def test_a_history_that_answers_the_same_page_again_is_not_asked_for_ever() -> None:
    paging = TemporalPaging("unknown")
    paging.advance(["urn:car:1"], {})

    with pytest.raises(RetriableError, match="an earlier page"):
        paging.advance(["urn:car:1"], {})


def test_a_count_of_history_of_thousands_of_digits_is_none() -> None:
    paging = TemporalPaging("unknown")
    paging.advance(["urn:car:1"], {"ngsild-results-count": "9" * 5_000})

    assert not paging.over


def test_a_long_range_of_history_is_none() -> None:
    with soon():
        assert range_end("date-time 2026-01-01T" + "-2026-01-01T" * 20_000) is None


GRANT = TokenRequest("client_credentials", "http://idm/oauth2", client_id="c", client_secret="s")


def test_a_token_may_live_longer_than_any_number() -> None:
    content = b'{"access_token":"a","expires_in":' + b"9" * 400 + b"}"
    with httpx.Client(transport=answering(content=content)) as client:
        assert Tokens(GRANT, client, time.monotonic).header() == {"Authorization": "Bearer a"}


def test_a_token_service_that_does_not_stop_is_none() -> None:
    with (
        httpx.Client(transport=answering(content=b" " * (2 << 20))) as client,
        pytest.raises(ConfigurationError, match="more than a token"),
    ):
        Tokens(GRANT, client, time.monotonic).header()


def test_a_transaction_of_no_calendar_is_no_row_of_a_log() -> None:
    fetched = DownloadedFile(200, httpx.Headers(), 1, NOON, NOON)
    with pytest.raises(IncompleteReplyError):
        rows_in(b'[{"id":1,"date":9999999999999999999999}]', fetched)


def test_a_transaction_of_thousands_of_digits_is_left_out() -> None:
    item = b"<item><title>Transaction " + b"9" * 5_000 + b"</title><added/></item>"
    added = item.replace(b"<added/>", b"<added>urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:A(1.0)</added>")

    assert parse_feed(b"<rss><channel>" + added + b"</channel></rss>") == {}


def test_a_long_name_of_a_schema_is_read_at_its_beginning() -> None:
    with soon():
        assert json_format("sdmx-json" * 100_000, None) is None


def test_a_page_of_errors_is_no_message_of_sdmx() -> None:
    with soon():
        assert is_error_message("text/xml", b"<a:Error " * 100_000) is False


def test_an_error_message_of_sdmx_is_known_by_its_namespace() -> None:
    words = b'<m:Error xmlns:m="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message">'

    assert is_error_message("text/xml", words) is True
    assert is_error_message("text/xml", words.replace(b"Error", b"Structure")) is False


def test_many_members_of_an_event_cost_what_they_weigh() -> None:
    members = b",".join(b'"a%d":1' % number for number in range(60_000))
    event = b'{"specversion":"1.0","id":"1","source":"/","type":"t",' + members + b',"z":1,"z":2}'

    with soon(), pytest.raises(CloudEventError, match="'z' is in the event several times"):
        decode({"content-type": "application/cloudevents+json"}, None, event)


def test_a_deep_message_in_an_event_is_no_message() -> None:
    with pytest.raises(ValueError, match="structured mode"):
        message_in(b'{"x":' + DEEP)


@pytest.mark.parametrize(
    "row",
    [
        DEEP,
        b'{"outbox":"a","sequence":"7"}',
        b'{"outbox":"a","sequence":null,"position":1,"records":1,"bytes":1,"transaction":1,"source_transaction":null,'
        b'"at":"2026-03-01T12:00:00+00:00"}',
        b'{"outbox":"a","sequence":7,"position":1,"records":1,"bytes":1,"transaction":1,"source_transaction":null,'
        b'"at":"2026-03-01T12:00:00"}',
        b"\xff",
    ],
)
def test_a_strangers_record_is_no_row_of_the_ledger(row: bytes) -> None:
    with pytest.raises(DefectError, match="not an entry"):
        LedgerEntry.from_json(row)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        (FOLDER.current_state(), lambda storage: storage.publication("vehicles").state.pointer()),
        (FOLDER.ledger_seen(), lambda storage: storage.publication("vehicles").ledger.known()),
        (FOLDER.known_topics(), lambda storage: storage.publication("vehicles").known_topics()),
        (FOLDER.outbox_claim("a"), lambda storage: storage.publication("vehicles").release_claim("a")),
        (FOLDER.shard_attempts("a", 0), lambda storage: storage.publication("vehicles").attempts.of_shard("a", 0)),
        (FOLDER.shard_attempts("a", 0), lambda storage: storage.publication("vehicles").attempts.of_outbox("a")),
    ],
)
@pytest.mark.parametrize("content", [b"", b'{"secret-of-a-user":1}', DEEP])
def test_a_damaged_document_is_called_so_without_its_content(
    storage: Home, path: str, read: Callable[[Home], object], content: bytes
) -> None:
    storage.write(path, content)

    with pytest.raises(DefectError) as raised:
        read(storage)

    assert path in str(raised.value)
    assert "secret-of-a-user" not in str(raised.value)


def shard_of(storage: Home) -> tuple[OutboxShardReader, Path]:
    manifest = outbox(storage, publication(), 7, [records(*(f"car{number}" for number in range(50)))])
    path = Path(storage.path(f"{FOLDER.shard(manifest.outbox, 0)}/{SHARD_FILE}"))
    return OutboxShardReader(storage, manifest, 0), path


def read_all(reader: OutboxShardReader) -> None:
    list(reader.batches(0))


@pytest.mark.parametrize("content", [b"", b"PAR1" + bytes(100) + b"PAR1", b"PAR1" + b"\xff" * 60 + b"PAR1"])
def test_what_is_no_parquet_is_damaged_and_not_merely_away(storage: Home, content: bytes) -> None:
    reader, path = shard_of(storage)
    path.write_bytes(content)

    with pytest.raises(DefectError, match="is damaged"):
        read_all(reader)
    with pytest.raises(DefectError, match="is damaged"):
        reader.varying_headers()


def test_a_flipped_bit_in_a_record_is_never_sent(storage: Home) -> None:
    reader, path = shard_of(storage)
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"car25", b"car95", 1))

    with pytest.raises(DefectError, match="is damaged"):
        read_all(reader)


def test_a_storage_that_is_away_stays_retriable(storage: Home) -> None:
    with pytest.raises(RetriableError), storage.translate_read_errors("a"):
        raise OSError(5, "Input/output error")
    with pytest.raises(RetriableError), storage.translate_read_errors("a"):
        raise OSError("When reading information for key: AWS Error NETWORK_CONNECTION")
    with pytest.raises(DefectError), storage.translate_read_errors("a"):
        raise pa.ArrowInvalid("Parquet magic bytes not found in footer")


@pytest.mark.parametrize("new", ["$" + "1" * 5_000, "$9"])
def test_a_group_of_thousands_of_digits_is_no_group(new: str) -> None:
    text = f'{{"serviceMappings":[{{"originalService":"a","newService":"{new}"}}]}}'
    with pytest.raises(ConfigurationError, match="there is no group"):
        NameMappings.from_json(text)


@pytest.mark.parametrize("read", [GroupingRules.from_json, NameMappings.from_json])
def test_a_number_of_thousands_of_digits_is_no_file_of_names(read: Callable[[str], object]) -> None:
    with pytest.raises(ConfigurationError, match="a number of thousands of digits"):
        read("9" * 5_000)


def test_an_outbox_without_a_story_is_damaged(storage: Home) -> None:
    storage.write(FOLDER.status("a"), b'{"format":1,"outbox":"a","sequence":7,"steps":[],"attempts":0}')
    with pytest.raises(DefectError, match="cannot be read as OutboxStatus"):
        storage.publication("vehicles").outboxes.status("a")


@pytest.mark.parametrize("url", ["//]", "http://[", "http://[::1"])
def test_half_of_an_address_is_no_token_service(url: str) -> None:
    with pytest.raises(ConfigurationError, match="the token service's address is not an HTTP address"):
        TokenRequest("keyrock", url, username="u", password="p")


@pytest.mark.parametrize("host", ["http://[", "broker:99999", "broker:abc", "[::1"])
def test_a_host_that_is_none_is_a_mistake_in_its_connection(host: str) -> None:
    with pytest.raises(ConfigurationError, match="has a host that is none"):
        broker_connection("broker", ConnectionFields(host, port=1026))


def test_half_of_an_address_is_not_where_airflow_is() -> None:
    with pytest.raises(ConfigurationError, match="is not the address of Airflow"):
        AirflowCredentials.from_environment({"CONTEXTURE_AIRFLOW_URL": "http://["})


def test_a_document_nested_without_end_passes_the_check_of_formats(storage: Home) -> None:
    storage.write("deep.json", DEEP)
    OutboxStatus.check_file(storage, "deep.json")


def test_a_model_nested_without_end_is_no_schema() -> None:
    with pytest.raises(ConfigurationError, match="not JSON"):
        compiled({"car": "car.json"}, {"car.json": DEEP.decode()})


def test_a_back_reference_of_thousands_of_digits_is_no_reference() -> None:
    text = r'{"serviceMappings":[{"originalService":"a\\%s"}]}' % ("9" * 5_000)
    with pytest.raises(ContextureError, match="refers to no group"):
        NameMappings.from_json(text)


def test_a_long_line_of_words_for_secrets_is_shown_soon() -> None:
    with soon():
        assert len(without_secrets("password" * 30_000)) == 4_001
    assert without_secrets("password: abc") == "password: ***"


def test_beginnings_of_certificates_without_an_end_are_passed_over_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, answer = tmp_path / "bin" / "keytool", tmp_path / "answer"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {answer}\n")
    program.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    real = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    answer.write_text("Alias name: -----BEGIN CERTIFICATE-----\n" * 15_000 + real)

    with soon(), Keytool() as keytool:
        assert keytool.certificates(answer, "") == real
