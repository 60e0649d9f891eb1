"""The errors of pydantic as sentences for the person who wrote the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

from pydantic.json_schema import SkipJsonSchema

from contexture.publications.fields import PublicationModel
from contexture.publications.problems import Location, ModelProblem, looks_secret
from contexture.publications.publication import PUBLICATIONS, NgsiPublication, Publication

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


Model = type[Publication]


def section_at(location: Location, model: Model) -> type[PublicationModel] | None:
    """Returns the section at a location of a publication, also inside a list or under a free key; None elsewhere."""
    section: type[PublicationModel] | None = model
    for part in location:
        if isinstance(part, str) and section is not None and part in section.model_fields:
            section = _section_in(section.model_fields[part].annotation)
    return section


def field_at(location: Location, model: Model) -> FieldInfo | None:
    """Returns the declaration of the key at a location, or of the key whose value holds it."""
    for end in range(len(location), 0, -1):
        section, key = section_at(location[: end - 1], model), location[end - 1]
        if section is not None and isinstance(key, str) and key in section.model_fields:
            return section.model_fields[key]
    return None


def written_keys(section: type[PublicationModel]) -> list[str]:
    """Returns the keys of a section that people write; those that Contexture fills in are hidden from editors too."""
    return [name for name, field in section.model_fields.items() if not _is_hidden(field)]


def all_leaves() -> tuple[tuple[str, ...], ...]:
    """Returns the path of every key of every kind of publication, each once."""
    return tuple(dict.fromkeys(path for model in PUBLICATIONS.values() for path in leaves(model)))


def leaves(section: type[PublicationModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the path of every key that holds a value rather than a section, in the order of the model."""
    for name, field in section.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, PublicationModel):
            yield from leaves(annotation, (*above, name))
        else:
            yield (*above, name)


def _is_hidden(field: FieldInfo) -> bool:
    return SkipJsonSchema in map(type, field.metadata)


def _section_in(annotation: object) -> type[PublicationModel] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, PublicationModel) else None
    arguments = get_args(annotation)
    for argument in arguments[:1] if get_origin(annotation) is Annotated else arguments:
        found = _section_in(argument)
        if found is not None:
            return found
    return None


_SHOWN_MAX = 60
_CLOSE = 0.6

# Words that users of NGSI, Cygnus and Airflow write for our keys.
_SYNONYMS = {
    "q": "query",
    "attrs": "attributes",
    "type": "types",
    "fiware_service": "service",
    "fiware_service_path": "service_path",
    "subservice": "service_path",
    "conn_id": "connection",
    "cron": "schedule",
    "schedule_interval": "schedule",
    "key_field": "key",
    "cleanup_policy": "keep",
}

_EXPECTED_TYPES = {
    "string_type": "a text; put it in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a section of `key: value` lines",
    "model_type": "a section of `key: value` lines",
    "model_attributes_type": "a section of `key: value` lines",
    "tuple_type": "a list: [a, b]",
}

_LIMITS = {
    "greater_than_equal": ("is too small", "at least", "ge"),
    "less_than_equal": ("is too large", "at most", "le"),
}


def describe_validation_error(detail: ErrorDetails, model: Model = NgsiPublication) -> ModelProblem:
    """Returns one pydantic error of a publication's class as a finding with the nearest valid key or value."""
    location = tuple(detail["loc"])
    kind, value = detail["type"], detail["input"]
    context: Mapping[str, object] = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(location, model)
    if kind == "missing":
        return ModelProblem(location, f"`{location[-1]}` is missing", _description(location, model), at_key=True)
    if kind == "literal_error":
        # The class knows its own kind alone.
        expected = str(tuple(PUBLICATIONS)) if location == ("source", "kind") else str(context["expected"])
        return _value_of_another_kind(location, value, expected) or _unknown_value(location, value, expected)
    if kind in _EXPECTED_TYPES:
        return ModelProblem(
            location, f"found {_shown(value)} for `{_key(location)}`", f"expected {_EXPECTED_TYPES[kind]}"
        )
    if kind in _LIMITS:
        what, bound, name = _LIMITS[kind]
        message = f"{_shown(value)} {what} for `{_key(location)}`"
        return ModelProblem(location, message, f"expected {bound} {context[name]}")
    if kind in {"string_too_short", "too_short"}:
        return ModelProblem(location, f"`{_key(location)}` is empty", "write a value, or leave the key out")
    if location[-1:] == ("[key]",):
        return ModelProblem(location[:-1], str(context.get("error", detail["msg"])), "", at_key=True)
    if kind == "value_error":
        return ModelProblem(location, str(context["error"]), _description(location, model))
    return ModelProblem(
        location, f"{_shown(value)} cannot be used for `{_key(location)}`", _description(location, model)
    )


def _unknown_key(location: Location, model: Model) -> ModelProblem:
    key = str(location[-1])
    if looks_secret(key):
        message = f"`{key}` looks like a secret; a secret belongs in an Airflow connection"
        return ModelProblem(
            location, message, "remove it here, and change it if this file was ever shared", at_key=True
        )
    kinds = [f"`kind: {kind}`" for kind, other in PUBLICATIONS.items() if _has_key(other, location)]
    if kinds:
        return ModelProblem(
            location, f"`{key}` needs {' or '.join(kinds)}", "leave it out", (("source", "kind"),), at_key=True
        )
    section = section_at(location[:-1], model)
    known = written_keys(section) if section else []
    nearest = _nearest_elsewhere(key, location[:-1], model) or _nearest(key, known)
    suggestion = f"did you mean `{nearest}`? " if nearest else ""
    hint = f"{suggestion}expected one of: {', '.join(known)}"
    return ModelProblem(location, f"unknown key `{key}`", hint, at_key=True)


def _has_key(model: Model, location: Location) -> bool:
    section = section_at(location[:-1], model)
    return section is not None and location[-1] in written_keys(section)


def _value_of_another_kind(location: Location, value: object, expected: str) -> ModelProblem | None:
    fields = {kind: field_at(location, other) for kind, other in PUBLICATIONS.items()}
    kinds = [f"`kind: {kind}`" for kind, field in fields.items() if field and value in get_args(field.annotation)]
    if not kinds or location == ("source", "kind"):
        return None
    message = f"`{_key(location)}: {value}` needs {' or '.join(kinds)}"
    return ModelProblem(location, message, f"expected one of: {', '.join(_choices(expected))}", (("source", "kind"),))


def _choices(expected: str) -> list[str]:
    return re.findall(r"'([^']*)'", expected)


def _unknown_value(location: Location, value: object, expected: str) -> ModelProblem:
    choices = _choices(expected)
    nearest = _nearest(str(value), choices)
    suggestion = f"did you mean `{nearest}`? " if nearest else ""
    message = f"{_shown(value)} is not a value of `{_key(location)}`"
    return ModelProblem(location, message, f"{suggestion}expected one of: {', '.join(choices)}")


def _nearest(word: str, choices: list[str]) -> str | None:
    written = _snake(word)
    if _SYNONYMS.get(written) in choices:
        return _SYNONYMS[written]
    by_form = {_snake(choice): choice for choice in choices}
    close = difflib.get_close_matches(written, by_form, n=1, cutoff=_CLOSE)
    return by_form[close[0]] if close else None


def _nearest_elsewhere(key: str, section: Location, model: Model) -> str | None:
    """Returns the same key in another section, for those who write Cygnus' flat parameters."""
    for name in model.model_fields:
        other = section_at((name,), model)
        if other is not None and (name,) != section and _snake(key) in other.model_fields:
            return f"{name}.{_snake(key)}"
    if section and _snake(key) in model.model_fields:
        return f"{_snake(key)} (at the top level)"
    return None


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower().replace("-", "_")


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list):
        return "a section" if isinstance(value, Mapping) else "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _key(location: Location) -> str:
    return str(next((part for part in reversed(location) if isinstance(part, str)), ""))


def _description(location: Location, model: Model) -> str:
    field = field_at(location, model)
    return (field.description or "") if field else ""
