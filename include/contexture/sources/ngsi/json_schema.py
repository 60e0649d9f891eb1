"""JSON Schemas that the user keeps for the entities of a type. No network, ever."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

import orjson
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # it ships no types
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from contexture.errors import ConfigurationError
from contexture.publications.schema_files import declared_address


def key_values(entity: Mapping[str, object]) -> dict[str, object]:
    """The entity with plain values: id and type as they are, of each attribute its value without type and metadata.

    Number literals that Python would rewrite become Python's numbers: a schema asks for their size, not their digits.
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
    """What keeps an entity from fitting its schema: the keyword, where, and how."""

    keyword: str
    place: str
    message: str


class ModelSchemas:
    """Compiled schemas by entity type; compiling is done once, for a million entities ask it.

    Args:
        models: entity type to the name of its schema among the documents.
        documents: name to the text of a schema, all that the models refer to included.

    Raises:
        ConfigurationError: a document is missing or no schema.
    """

    def __init__(self, models: Mapping[str, str], documents: Mapping[str, str]) -> None:
        schemas = {name: _parsed(name, text) for name, text in documents.items()}
        registry: Registry[Any] = Registry()
        for name, schema in schemas.items():
            resource = DRAFT202012.create_resource(schema)
            registry = registry.with_resource(_address(name, schema), resource)
            # One of draft 4 is known by its `id`, which later drafts leave alone.
            if address := declared_address(schema):
                registry = registry.with_resource(address, resource)
        self._registry = registry.crawl()
        self._validators = {kind: self._validator(kind, name, schemas) for kind, name in models.items()}
        self._known = {kind: self._properties(name, schemas[name]) for kind, name in models.items()}

    def __contains__(self, kind: str) -> bool:
        return kind in self._validators

    def problems(self, kind: str, entity: Mapping[str, object]) -> list[SchemaViolation]:
        """What keeps an entity in keyValues form from fitting the schema of its type; five problems at most.

        Raises:
            ConfigurationError: a schema refers to one that isn't there.
        """
        found: list[SchemaViolation] = []
        try:
            for error in self._validators[kind].iter_errors(entity):
                place = "/".join(str(part) for part in error.absolute_path)
                found.append(SchemaViolation(str(error.validator), place, _told(error)))
                if len(found) == _MOST_PROBLEMS:
                    break
        except Unresolvable as error:
            raise _unresolvable(kind, error) from None
        return found

    def knows(self, kind: str, attribute: str) -> bool:
        """Whether the schema of a type names an attribute anywhere among its properties."""
        return attribute in self._known[kind]

    def _validator(self, kind: str, name: str, schemas: Mapping[str, dict[str, Any]]) -> Any:
        if name not in schemas:
            raise ConfigurationError(
                f"the schema {name} of {kind} was not read", next_step="load the publication from its file"
            )
        schema = {**schemas[name], "$id": _address(name, schemas[name])}
        draft = validator_for(schema, default=Draft202012Validator)
        return draft(schema, registry=self._registry)

    def _properties(self, name: str, schema: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(_property_names(schema, _address(name, schema), self._registry, set()))


@lru_cache(maxsize=4)
def _compiled(models: tuple[tuple[str, str], ...], documents: tuple[tuple[str, str], ...]) -> ModelSchemas:
    return ModelSchemas(dict(models), dict(documents))


def compiled(models: Mapping[str, str], documents: Mapping[str, str]) -> ModelSchemas:
    """The compiled schemas of a publication, made once for each process.

    Raises:
        ConfigurationError: as `ModelSchemas`.
    """
    return _compiled(tuple(models.items()), tuple(documents.items()))


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name} is no JSON: {error}", next_step="correct quality.models") from None
    if not isinstance(schema, dict):
        raise ConfigurationError(f"{name} is no JSON Schema", next_step="correct quality.models")
    return schema


def _address(name: str, schema: Mapping[str, Any]) -> str:
    declared = schema.get("$id")
    return urljoin(f"{_OWN_ADDRESS}{name}", declared if isinstance(declared, str) else "")


def _told(error: Any) -> str:
    # The library's own sentence shows the whole value, which may be personal and long.
    if error.validator == "required":
        return str(error.message)[:100]
    if error.validator in {"allOf", "anyOf", "oneOf"}:
        return f"fits none or too many of {error.validator}"
    asked = json.dumps(error.validator_value)[:60] if not isinstance(error.validator_value, dict) else "its schema"
    return f"breaks {error.validator}: {asked}"


def _property_names(schema: Any, base: str, registry: Registry[Any], seen: set[str]) -> Iterator[str]:
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
        try:
            target = registry.resolver().lookup(address).contents
        except Unresolvable as error:
            raise _unresolvable(base, error) from None
        yield from _property_names(target, urldefrag(address)[0], registry, seen)


def _unresolvable(where: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"the schema of {where} refers to {str(getattr(error, 'ref', error))[:150]}, which isn't among its files",
        next_step="copy models with `contexture models vendor`, which takes along what they refer to",
    )
