"""What the folder of publications holds: YAML, and files of name mappings and grouping rules."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity
from contexture.publications import fingerprint
from contexture.publications.cygnus_names import GroupingRules, NameMappings
from contexture.publications.loading import load_publication_file
from tools.fuzz.target import Target

_FOLDER = Path(__file__).parents[3] / "include" / "publications"
_IDENTITY = ContextIdentity("vehicles", "/4wheels", "car1", "car")
_SMALL = b"""name: cars
schedule: "*/5 * * * *"
source:
  kind: ngsi
  connection: broker
  service: vehicles
  types: [car]
batches: {batch_size: 10, batch_ttl: -1, batch_retry_intervals: [5, 10]}
"""
_RULES = (
    rb'{"grouping_rules":[{"id":1,"fields":["entityId","entityType"],"regex":"(car\\d+)\\w+$","destination":"cars",'
    rb'"fiware_service_path":"/a"}]}'
)
_MAPPINGS = (
    rb'{"serviceMappings":[{"originalService":"(?i)^(veh)icles","newService":"$1_x","servicePathMappings":[{'
    rb'"originalServicePath":"/\\Q4\\Ew.*","newServicePath":"/p$0","entityMappings":[{"originalEntityId":'
    rb'"(?<n>[a-z&&]+)(\\d)","newEntityId":"${n}-$2","originalEntityType":"^.*$","newEntityType":"t",'
    rb'"attributeMappings":[{"originalAttributeName":"\\p{Alpha}++","newAttributeName":"b"}]}]}]}]}'
)
_REGEX_WORDS = (
    rb"\\1",
    rb"\\k<n>",
    rb"\\Q",
    rb"\\x{110000}",
    rb"\\u00e9",
    rb"(?<n>",
    rb"(?i:",
    b"[^",
    b"{2,99999999999}",
    b"$" + b"1" * 5_000,
    rb"\\" + b"9" * 5_000,
    b"(" * 300,
    b"*+",
    b"(?>",
    b"a{1,1000}" * 30,
)
_YAML_WORDS = (
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!python/object:os.system ",
    b"!!binary ",
    b"---\n",
    b"? ",
    b"|\n",
    b">-\n",
    b"2026-13-45T99:99:99Z",
    b"-9" * 40,
    b"9" * 4_400,
    b".inf",
    b"1e400",
    b"0o17",
    b"yes",
    b"'",
    b"%YAML 9.9\n",
    b"\t",
    b"{}",
    b"\xef\xbb\xbf",
    b"$HOME",
    b"/etc/passwd",
    b"(a+)+$",
)


@cache
def _folder() -> Path:
    # Files that a publication names are looked for beside it: there are none.
    return Path(tempfile.mkdtemp(prefix="contexture-fuzz-"))


def _publication(data: bytes) -> object:
    path = _folder() / "publication.yaml"
    path.write_bytes(data)
    publication = load_publication_file(path)
    fingerprint(publication)
    return publication.source.kind


def _grouping(data: bytes) -> object:
    rules = GroupingRules.from_json(data.decode("utf-8", "replace"))
    return len(rules.rules), rules.find(_IDENTITY) is None


def _mappings(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    found = [NameMappings.from_json(text, compat=compat).map(_IDENTITY, "speed", "Number") for compat in (False, True)]
    return tuple(each.identity == _IDENTITY for each in found)


def _publication_inputs() -> Mapping[str, bytes]:
    return {"small": _SMALL, **{path.name: path.read_bytes() for path in sorted(_FOLDER.glob("*.yaml"))}}


_CONFIGURATION = (ConfigurationError,)

TARGETS = (
    Target("publications", "publications", _publication, _publication_inputs, "yaml", _YAML_WORDS, _CONFIGURATION),
    Target(
        "grouping-rules", "grouping rules", _grouping, lambda: {"rules": _RULES}, "json", _REGEX_WORDS, _CONFIGURATION
    ),
    Target(
        "name-mappings", "name mappings", _mappings, lambda: {"some": _MAPPINGS}, "json", _REGEX_WORDS, _CONFIGURATION
    ),
)
