"""Records of strangers in topics of ours, as rebuilding state and the proof of a replica read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contexture.kafka import TopicRecord
from contexture.operations.recovery.ownership import owner_of, value_reader
from contexture.publications import Publication
from tools.fuzz.target import Target, request, taken_apart
from tools.fuzz.targets.broker import ENTITY

_URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(1.0)"
_CAR = '["vehicles","/4wheels","car1","car"]'
_MAPPINGS = (
    '{"serviceMappings":[{"originalService":"vehicles","servicePathMappings":[{"originalServicePath":"/4wheels",'
    '"entityMappings":[{"originalEntityId":".*","originalEntityType":"car","attributeMappings":'
    '[{"originalAttributeName":"speed","originalAttributeType":"Number","newAttributeName":"v"}]}]}]}]}'
)
_CONTEXT = {"kind": "ngsi", "connection": "c", "service": "vehicles", "service_path": "/4wheels", "id_pattern": "^c"}


def _publication(source: Mapping[str, Any], **sections: Any) -> Publication:
    return Publication.model_validate({"name": "p", "schedule": None, "source": source, **sections})


_PUBLICATIONS = (
    _publication(
        _CONTEXT, topics={"naming": "fixed", "topics": ["t"]}, message={"format": "ngsiv2", "key": "identity"}
    ),
    _publication(
        _CONTEXT,
        topics={
            **{"data_model": "dm-by-attribute", "enable_name_mappings": True, "name_mappings": "m.json"},
            "name_mappings_content": _MAPPINGS,
        },
        message={"format": "ngsiv2", "key": "identity", "envelope": "cloudevents-structured"},
    ),
    _publication({"kind": "sdmx", "connection": "r", "select": ["*=SDMX:*(*)"]}, topics={"topics": ["t"]}),
)
_READERS = [(owner_of(each), value_reader(each)) for each in _PUBLICATIONS]


def _record(data: bytes) -> object:
    _, headers, body = taken_apart(data)
    key = headers["key"].encode("latin-1") if "key" in headers else None
    record = TopicRecord(headers.get("topic", "t"), 0, 0, key, body or None, (), None)
    return tuple((owner.of(record) is None, read(body).content is None) for owner, read in _READERS)


def _inputs() -> Mapping[str, bytes]:
    structure = (
        b'{"meta":{"id":"M1"},"Codelist":[{"id":"CL_SEX","agencyId":"SDMX","version":"1.0",'
        b'"urn":"' + _URN.encode() + b'","items":[{"id":"M"}]}]}'
    )
    event = b'{"specversion":"1.0","id":"1","source":"/c","type":"t","data":' + ENTITY + b"}"
    mapped = "vehiclesxffffx002f4wheelsxffffcar1xffffcarxffffv"
    return {
        "entity": request({"topic": "t", "key": _CAR}, ENTITY),
        "attribute": request({"topic": mapped, "key": _CAR.replace('"]', '","speed"]')}, event),
        "structure": request({"topic": "t", "key": _URN}, structure),
        "tombstone": request({"topic": "t", "key": _CAR}),
        "bare": request({"topic": "t"}, b"{}"),
    }


_WORDS = (b"key: ", b"topic: ", b'["', b"[" * 300, _URN.encode(), b"urn:sdmx:", b"\xed\xa0\x80", b'"data":')

TARGETS = (Target("records", "records of strangers in our topics", _record, _inputs, "request", _WORDS),)
