"""JSON Schemas that the user keeps for the entities of a type. No network, ever."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, NoReturn
from urllib.parse import urldefrag, urljoin

import orjson
from jsonschema_rs import ReferencingError, Registry, ValidationError, Validator, validator_for

from contexture.errors import ConfigurationError
from contexture.publications.schema_files import declared_address


def key_values(entity: Mapping[str, object]) -> dict[str, object]:
    """Returns the entity with plain values: id and type as they are, of each attribute its value alone.

    Number literals that Python would rewrite become Python's numbers: a schema limits their size, not their digits.
    """
    return {name: _plain(_value(name, member)) for name, member in entity.items()}


def _value(name: str, member: object) -> object:
    if name in {"id", "type"} or not isinstance(member, dict):
        return member
    return member.get("value")


def _plain(value: object) -> object:
    if isinstance(value, orjson.Fragment):
        literal = orjson.dumps(value).decode()
        return int(literal) if literal.lstrip("-").isdecimal() else float(literal)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


_OWN_ADDRESS = "contexture-model:/"
_MOST_PROBLEMS = 5


class SchemaViolation(NamedTuple):
    """One thing that a schema refuses in an entity: the keyword, the place, and a sentence."""

    keyword: str
    place: str
    message: str


class ModelSchemas:
    """Compiled schemas by entity type, compiled once because a million entities are checked.

    Args:
        models: entity type to the name of its schema among the documents.
        documents: name to the text of a schema, all that the models refer to included.

    Raises:
        ConfigurationError: a document is missing or no schema, or refers to one that is not there.
    """

    def __init__(self, models: Mapping[str, str], documents: Mapping[str, str]) -> None:
        self._schemas = {name: _parsed(name, text) for name, text in documents.items()}
        resources = {_address(name, schema): schema for name, schema in self._schemas.items()}
        # One of draft 4 is known by its `id`, which later drafts leave alone.
        resources |= {found: schema for schema in self._schemas.values() if (found := declared_address(schema))}
        missing: list[str] = []

        def refuse(address: str) -> NoReturn:
            missing.append(address)
            raise LookupError(address)

        try:
            self._registry = Registry(resources.items(), retriever=refuse)
            self._validators = {kind: self._validator(kind, name) for kind, name in models.items()}
            self._known = {kind: self._properties(name) for kind, name in models.items()}
        except (ReferencingError, ValueError) as error:
            raise _unusable(error, missing) from None

    def __contains__(self, kind: str) -> bool:
        return kind in self._validators

    def problems(self, kind: str, entity: Mapping[str, object]) -> list[SchemaViolation]:
        """Returns what the schema of its type refuses in an entity in keyValues form; five problems at most."""
        return [
            SchemaViolation(error.kind.name, "/".join(map(str, error.instance_path)), _sentence(error))
            for error in islice(self._validators[kind].iter_errors(entity), _MOST_PROBLEMS)
        ]

    def knows(self, kind: str, attribute: str) -> bool:
        """Whether the schema of a type names an attribute anywhere among its properties."""
        return attribute in self._known[kind]

    def _validator(self, kind: str, name: str) -> Validator:
        if name not in self._schemas:
            raise ConfigurationError(
                f"the schema {name} of {kind} was not read", next_step="load the publication from its file"
            )
        schema = self._schemas[name]
        return validator_for(schema, registry=self._registry, base_uri=_address(name, schema), offline=True)

    def _properties(self, name: str) -> frozenset[str]:
        schema = self._schemas[name]
        return frozenset(_property_names(schema, _address(name, schema), self._registry, set()))


@lru_cache(maxsize=4)
def _compiled(models: tuple[tuple[str, str], ...], documents: tuple[tuple[str, str], ...]) -> ModelSchemas:
    return ModelSchemas(dict(models), dict(documents))


def compiled(models: Mapping[str, str], documents: Mapping[str, str]) -> ModelSchemas:
    """Returns the compiled schemas of a publication, made once for each process.

    Raises:
        ConfigurationError: as `ModelSchemas`.
    """
    return _compiled(tuple(models.items()), tuple(documents.items()))


def _parsed(name: str, text: str) -> dict[str, object]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name} is not JSON: {error}", next_step="correct quality.models") from None
    if not isinstance(schema, dict):
        raise ConfigurationError(f"{name} is not a JSON Schema", next_step="correct quality.models")
    # A validator cannot check by other metaschemas.
    is_draft = str(schema.get("$schema", "")).startswith(
        ("http://json-schema.org/draft", "https://json-schema.org/draft")
    )
    return schema if is_draft else {name: value for name, value in schema.items() if name != "$schema"}


def _address(name: str, schema: Mapping[str, object]) -> str:
    declared = schema.get("$id")
    return urljoin(f"{_OWN_ADDRESS}{name}", declared if isinstance(declared, str) else "")


def _sentence(error: ValidationError) -> str:
    # The library's own sentence shows the whole value, which may be personal and long.
    keyword, value = error.kind.name, error.kind.value
    if keyword == "required":
        return f"{value!r} is a required property"[:100]
    if keyword in {"allOf", "anyOf", "oneOf"}:
        return f"matches none or too many of {keyword}"
    is_short = value is not None and not isinstance(value, (dict, ValidationError))
    return f"breaks {keyword}: {json.dumps(value)[:60]}" if is_short else f"breaks {keyword}"


def _property_names(schema: object, base: str, registry: Registry, seen: set[str]) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _property_names(item, base, registry, seen)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    yield from properties if isinstance(properties, dict) else ()
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from _property_names(schema.get(keyword), base, registry, seen)
    reference = schema.get("$ref")
    if isinstance(reference, str) and (address := urljoin(base, reference)) not in seen:
        seen.add(address)
        target = registry.resolver(base).lookup(address).contents
        yield from _property_names(target, urldefrag(address)[0], registry, seen)


def _unusable(error: Exception, missing: Sequence[str]) -> ConfigurationError:
    why = f"one refers to {missing[0][:150]}, which is not among its files" if missing else str(error).splitlines()[0]
    return ConfigurationError(
        f"the schemas of quality.models cannot be used: {why[:250]}",
        next_step="copy models with `contexture models vendor`, which also copies what they refer to",
    )
