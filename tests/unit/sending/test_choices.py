"""Encoders and partitioners that a publication names."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.outboxes import publication
from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity, identity_key
from contexture.kafka import ClientSettings, partition_for
from contexture.publications import Publication
from contexture.sending import choices
from contexture.sending.choices import encode_of, entry_point
from contexture.sending.context import partitioned_by_topic
from contexture.sending.testing import OutboxRow, record_batch

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
CAR = identity_key(ContextIdentity("vehicles", "/4wheels", "car1", "car"))
BUS = identity_key(ContextIdentity("vehicles", "/4wheels", "bus1", "bus"))
CODELIST = b"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB.A:CL_X(1.0)"


def offered(**functions: Callable[..., Any]) -> choices.Named:
    return lambda group, name: functions[name]


def encoded(owner: Publication, *rows: OutboxRow, **functions: Callable[..., Any]) -> pa.RecordBatch:
    encode = encode_of(owner, SETTINGS, named=offered(**functions), partitions_of=lambda topic: 4)
    assert encode is not None
    return encode(record_batch(rows, 0))


def test_without_choices_rows_stay_as_they_are():
    assert encode_of(publication(), SETTINGS) is None


def test_an_encoder_changes_values_and_leaves_tombstones():
    owner = publication(message={"encoder": "packed"})
    rows = encoded(owner, OutboxRow("cars", b"a", b"x"), OutboxRow("cars", b"b", None), packed=zlib.compress)
    assert rows.column("value").to_pylist() == [zlib.compress(b"x"), None]


def test_an_encoder_and_a_history_work_together():
    owner = publication(message={"encoder": "packed"}, topics={"keep": "history"})
    rows = encoded(owner, OutboxRow("cars", b"a", b"x", timestamp_ms=7), packed=zlib.compress)
    assert rows.column("value").to_pylist() == [zlib.compress(b"x")]
    assert rows.column("header:contexture_event_time").to_pylist() == [b"7"]


@pytest.mark.parametrize(
    ("partitioner", "hashed"),
    [
        ("topic", (b"cars", b"cars")),
        ("type", (b"car", b"bus")),
        ("id", (b"car1", b"bus1")),
        ("service", (b"vehicles",) * 2),
    ],
)
def test_a_topic_or_a_part_of_the_identity_is_hashed_as_java_hashes_a_key(partitioner, hashed):
    owner = publication(publish={"partitioner": partitioner})
    rows = encoded(owner, OutboxRow("cars", CAR, b"x"), OutboxRow("cars", BUS, None))
    assert rows.column("partition").to_pylist() == [partition_for(each, 4) for each in hashed]


@pytest.mark.parametrize(("partitioner", "hashed"), [("agency", b"ECB.A"), ("class", b"Codelist")])
def test_the_parts_of_a_urn_are_agency_and_class(partitioner, hashed):
    owner = structures(publish={"partitioner": partitioner})
    rows = encoded(owner, OutboxRow("structures", CODELIST, b"x"))
    assert rows.column("partition").to_pylist() == [partition_for(hashed, 4)]


def test_a_number_is_the_partition_of_every_record():
    owner = publication(publish={"partitioner": 3}, topics={"partitions": 4})
    assert owner.publish.partitioner == "3"
    rows = encoded(owner, OutboxRow("cars", b"a", b"x"), OutboxRow("cars", None, b"y"))
    assert rows.column("partition").to_pylist() == [3, 3]


def test_a_function_of_a_package_gets_key_and_number_of_partitions():
    owner = publication(publish={"partitioner": "vip"})
    rows = encoded(
        owner,
        OutboxRow("cars", b"vip1", b"x"),
        OutboxRow("cars", b"b", b"y"),
        vip=lambda key, partitions: 0 if key.startswith(b"vip") else partitions - 1,
    )
    assert rows.column("partition").to_pylist() == [0, 3]


@pytest.mark.parametrize("chosen", [4, -1])
def test_a_partition_that_the_topic_lacks_is_refused_before_anything_is_sent(chosen):
    rows = record_batch([OutboxRow("cars", b"a", b"x")], 0)
    with pytest.raises(ConfigurationError, match=f"chose partition {chosen} of topic cars, which has 4"):
        partitioned_by_topic(lambda topic: 4, lambda topic, key, partitions: chosen)(rows)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda value: 1 / 0, "the encoder 'bad' failed with ZeroDivisionError"),
        (lambda value: "text", "the encoder 'bad' returned str in place of bytes"),
    ],
)
def test_an_encoder_that_fails_is_named_without_its_data(function, said):
    with pytest.raises(ConfigurationError, match=said):
        encoded(publication(message={"encoder": "bad"}), OutboxRow("cars", b"a", b"secret"), bad=function)


def test_a_partitioner_that_returns_no_number_is_named():
    with pytest.raises(ConfigurationError, match="the partitioner 'bad' returned NoneType in place of a whole number"):
        encoded(
            publication(publish={"partitioner": "bad"}),
            OutboxRow("cars", b"a", b"x"),
            bad=lambda key, partitions: None,
        )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with entry points."""
    (tmp_path / "own_encoders.py").write_text("def reverse(value):\n    return value[::-1]\n\n\nNUMBER = 1\n")
    about = tmp_path / "own_encoders-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-encoders\nVersion: 1.0\n")
    points = "reverse = own_encoders:reverse\nnumber = own_encoders:NUMBER\nabsent = own_encoders:absent\n"
    (about / "entry_points.txt").write_text(f"[contexture.encoders]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield about
    sys.modules.pop("own_encoders", None)


@pytest.mark.usefixtures("package")
def test_an_installed_package_offers_its_functions():
    assert entry_point("contexture.encoders", "reverse")(b"abc") == b"cba"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zlib", r"no installed package offers 'zlib'.*offered are: absent, number, reverse"),
        ("number", "'number' of the group contexture.encoders is not a function"),
        ("absent", "'absent' of the group contexture.encoders cannot be loaded: AttributeError"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_name_that_cannot_be_used_says_what_is_offered(name, said):
    with pytest.raises(ConfigurationError, match=said):
        entry_point("contexture.encoders", name)
