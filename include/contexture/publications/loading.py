"""From files to publications: finding them, parsing each, and reporting every problem with its place."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from contexture.errors import ConfigurationError
from contexture.publications import fields, validation_messages, yaml_document
from contexture.publications.checks import records
from contexture.publications.checks.ngsi import linked_data_notes
from contexture.publications.cygnus_names import GroupingRules, NameMappings, files, grouping, mappings
from contexture.publications.delivery import KEY_NONE
from contexture.publications.problems import (
    Location,
    ModelProblem,
    ModelProblemsError,
    Problem,
    PublicationError,
    dotted,
    without_secrets,
)
from contexture.publications.publication import NgsiPublication, Publication, publication_class
from contexture.publications.schema_files import with_models
from contexture.publications.topics import CYGNUS_2_19
from contexture.publications.yaml_document import SourceSpan, YamlDocument, YamlError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MEMBERS = {"grouping_rules": grouping.MEMBER, "name_mappings": mappings.MEMBER}
_KEYS = {*_MEMBERS, "compat"}
_SUFFIX = "_content"


def with_name_files(
    written: object, publication: Publication | None, folder: Path
) -> tuple[Publication | None, list[ModelProblem]]:
    """Returns the publication with the contents of its name files, and what is wrong with them."""
    section = written.get("topics") if isinstance(written, Mapping) else None
    hidden = [f"{key}{_SUFFIX}" for key in _MEMBERS if isinstance(section, Mapping) and f"{key}{_SUFFIX}" in section]
    if hidden:
        return publication, [
            ModelProblem(("topics", hidden[0]), f"unknown key `{hidden[0]}`", "leave it out", at_key=True)
        ]
    # Problems of these files are reported also where the publication is wrong elsewhere.
    names = section if publication is None else publication.topics.model_dump(include=_KEYS)
    contents, findings = _contents(names if isinstance(names, Mapping) else {}, folder)
    if publication is None:
        return None, findings
    topics = publication.topics.model_copy(update=contents)
    return (publication.model_copy(update={"topics": topics}) if contents else publication), findings


def _contents(names: Mapping[str, object], folder: Path) -> tuple[dict[str, str], list[ModelProblem]]:
    contents, findings = dict[str, str](), list[ModelProblem]()
    for key in _MEMBERS:
        name = names.get(key)
        if not isinstance(name, str) or not name:
            continue
        try:
            contents[f"{key}{_SUFFIX}"] = _content(key, folder / name, compat=names.get("compat") == CYGNUS_2_19)
        except ConfigurationError as error:
            findings.append(ModelProblem(("topics", key), error.message, error.next_step))
    return contents, findings


def _content(key: str, path: Path, *, compat: bool) -> str:
    content = files.canonical(files.read(path), _MEMBERS[key])
    if key == "grouping_rules":
        GroupingRules.from_json(content, compat=compat)
    else:
        NameMappings.from_json(content, compat=compat)
    return content


# Replaces what is missing or wrong, so that the rest can still be checked together.
_STAND_IN: Mapping[str, object] = {
    "name": "stand-in",
    "source": {"kind": "ngsi", "connection": "stand_in", "service": "stand_in"},
}


def validate(data: object) -> tuple[Publication | None, list[ModelProblem]]:
    """Returns the publication, or None and every reason against it."""
    if not isinstance(data, Mapping):
        found = "the file is empty" if data is None else "a publication is not a list or a single value"
        return None, [ModelProblem((), found, "expected `key: value` lines, beginning with `name:`")]
    try:
        return Publication.model_validate(data), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    findings = list(_findings(details, publication_class(data)))
    wrong = [tuple(detail["loc"]) for detail in details if detail["loc"]]
    return None, [*findings, *_of_the_rest(data, wrong)] if wrong else findings


def _findings(details: list[ErrorDetails], model: type[Publication]) -> Iterator[ModelProblem]:
    for detail in details:
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, ModelProblemsError):
            yield from _once_for_each_place(cause.findings)
        else:
            yield validation_messages.describe_validation_error(detail, model)


def _once_for_each_place(findings: tuple[ModelProblem, ...]) -> Iterator[ModelProblem]:
    # What is impossible comes first and matters more than what is not supported yet.
    seen: set[Location] = set()
    for finding in findings:
        if finding.location not in seen or not finding.message.startswith("not yet supported"):
            yield finding
        seen.add(finding.location)


def _of_the_rest(data: Mapping[str, Any], wrong: list[Location]) -> list[ModelProblem]:
    """Findings about the keys that are right, found by leaving out those that are wrong."""
    try:
        Publication.model_validate(_without(data, wrong))
    except ValidationError as error:
        found = _findings(error.errors(include_url=False), publication_class(data))
        return [finding for finding in found if not _touches(finding, wrong)]
    return []


def _without(data: Mapping[str, Any], wrong: list[Location]) -> dict[str, Any]:
    rest = copy.deepcopy(dict(data))
    for location in wrong:
        section = rest.get(str(location[0]))
        if len(location) > 1 and isinstance(section, dict):
            section.pop(location[1], None)
        else:
            rest.pop(str(location[0]), None)
    rest.setdefault("name", _STAND_IN["name"])
    source = rest.setdefault("source", {})
    for key, value in _STAND_IN["source"].items():  # type: ignore[attr-defined]
        if isinstance(source, dict) and not (key == "service" and source.get("kind") == "sdmx"):
            source.setdefault(key, value)
    return rest


def _touches(finding: ModelProblem, wrong: list[Location]) -> bool:
    places = (finding.location, *finding.involves)
    return any(_overlap(place, location[:2]) for place in places for location in wrong)


def _overlap(one: Location, other: Location) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


_START = SourceSpan(1, 1)


@dataclass(frozen=True, slots=True)
class LoadedPublication:
    """The content of a publication file: the publication with notes, or the error with every problem."""

    path: Path
    publication: Publication | None
    error: PublicationError | None
    notes: tuple[Problem, ...] = ()


def parse_publication(path: Path) -> LoadedPublication:
    """Reads the publication of a file and notes about it, or everything that is wrong with it."""
    try:
        text = _text(path)
    except YamlError as error:
        return _unusable(path, [Problem(path, 0, 0, 0, "", error.message, error.hint)])
    lines = text.splitlines()
    try:
        document = yaml_document.parse(text)
    except YamlError as error:
        return _unusable(path, [_of_document(path, lines, error)])
    publication, findings = validate(document.value)
    publication, unread = with_models(document.value, publication, path.parent)
    publication, unnamed = with_name_files(document.value, publication, path.parent)
    findings = [*findings, *unread, *unnamed]
    errors = [_of_document(path, lines, error) for error in document.repeated]
    errors += [_placed(path, lines, document, finding) for finding in findings]
    if errors or publication is None:
        return _unusable(path, sorted(errors, key=lambda problem: (problem.line, problem.column)))
    warnings = find_warnings(document.value, publication)
    notes = tuple(_placed(path, lines, document, warning, severity="note") for warning in warnings)
    return LoadedPublication(path, publication, None, notes)


def _unusable(path: Path, problems: list[Problem]) -> LoadedPublication:
    return LoadedPublication(path, None, PublicationError(path, problems))


def place(path: Path, finding: ModelProblem) -> Problem:
    """Returns a finding as a problem of a file that was read before."""
    text = _text(path)
    return _placed(path, text.splitlines(), yaml_document.parse(text), finding)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > yaml_document.MAX_BYTES:
            limit = f"at most {yaml_document.MAX_BYTES // 1024} KiB"
            raise YamlError("the file is too large for a publication", f"expected {limit}", None)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise YamlError(f"the file cannot be read: {error.strerror}", "check the path and permissions", None) from None
    except UnicodeDecodeError as error:
        raise YamlError(f"byte {error.start} is not UTF-8", "save the file as UTF-8 text", None) from None


def _of_document(path: Path, lines: list[str], error: YamlError) -> Problem:
    span = error.span or _START
    return Problem(
        path, span.line, span.column, span.length, "", error.message, error.hint, _source_line(lines, span.line)
    )


def _placed(
    path: Path,
    lines: list[str],
    document: YamlDocument,
    finding: ModelProblem,
    *,
    severity: Literal["error", "note"] = "error",
) -> Problem:
    span = document.span(finding.location, of_key=finding.at_key) or _START
    return Problem(
        path=path,
        line=span.line,
        column=span.column,
        length=span.length,
        location=dotted(finding.location),
        message=without_secrets(finding.message),
        hint=finding.hint,
        source_line=_source_line(lines, span.line),
        severity=severity,
    )


def _source_line(lines: list[str], number: int) -> str:
    return without_secrets(lines[number - 1].rstrip()) if 0 < number <= len(lines) else ""


_SUFFIXES = frozenset({".yaml", ".yml"})


def load_publication_file(path: Path) -> Publication:
    """Returns the publication of one file.

    Raises:
        PublicationError: the file can't be read or used; it carries all problems of the file.
    """
    loaded = parse_publication(path)
    if loaded.publication is None:
        raise loaded.error or PublicationError(path, ())
    return loaded.publication


def load_publications(path: Path) -> list[Publication]:
    """Returns the publications of a folder (and the folders in it) or of one file, ordered by path.

    Raises:
        PublicationError: one or more files can't be used; it carries all problems of them all.
        ConfigurationError: there is no such folder.
    """
    loaded = discover(path)
    problems = [problem for each in loaded if each.error for problem in each.error.problems]
    if problems:
        raise PublicationError(path, problems)
    return [each.publication for each in loaded if each.publication]


def discover(*paths: Path) -> list[LoadedPublication]:
    """Returns every publication file of folders (or single files) with what it gave, ordered by path within each.

    Raises:
        ConfigurationError: there is no such folder.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    return _without_repeated_names([parse_publication(file) for file in files])


def _files(path: Path) -> list[Path]:
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            next(path.iterdir(), None)
    except OSError as error:
        # A glob would find nothing in it, as if no publication were there.
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", next_step="check the path and its permissions", path=path
        ) from error
    if not path.is_dir():
        raise ConfigurationError(
            f"{path} is neither a file nor a folder",
            next_step="name a folder with publication files, or set CONTEXTURE_PUBLICATIONS as Airflow has it",
            path=path,
        )
    files = (file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    return sorted(file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts))


def _without_repeated_names(loaded: list[LoadedPublication]) -> list[LoadedPublication]:
    owners: dict[str, Path] = {}
    # A file called after its publication owns the name, so that a copy under another name never takes it over.
    for each in sorted(loaded, key=lambda item: item.publication is None or item.path.stem != item.publication.name):
        if each.publication is not None:
            owners.setdefault(each.publication.name, each.path)
    return [_refused_if_repeated(each, owners) for each in loaded]


def _refused_if_repeated(each: LoadedPublication, owners: dict[str, Path]) -> LoadedPublication:
    if each.publication is None or owners[each.publication.name] == each.path:
        return each
    name, owner = each.publication.name, owners[each.publication.name]
    message = f"the name {name!r} is taken by {owner}"
    finding = ModelProblem(("name",), message, "give this publication another name, or remove one of the files")
    problem = place(each.path, finding)
    return replace(each, publication=None, error=PublicationError(each.path, [problem]))


_REPLACED = {
    "broker_list": "the brokers are `bootstrap.servers` of the Airflow connection named by `publish.connection`",
    "zookeeper_endpoint": "Kafka 4 has no ZooKeeper; topics are made through the brokers",
}


def find_warnings(data: object, publication: Publication) -> Iterator[ModelProblem]:
    """Yields what the reader of the file should know, as findings that are no errors."""
    yield from _cygnus_parameters(publication)
    if isinstance(publication, NgsiPublication):
        yield from _service_in_lower_case(data, publication)
        yield from _covered_paths(data, publication)
        yield from _vague_deletions(publication)
        yield from _key_by_value(publication)
        yield from _rules_left_out(publication)
        yield from linked_data_notes(publication)


def _cygnus_parameters(publication: Publication) -> Iterator[ModelProblem]:
    for key, replacement in _REPLACED.items():
        if getattr(publication.publish, key) is not None:
            yield ModelProblem(("publish", key), f"`{key}` of Cygnus has no effect", replacement, at_key=True)


def _service_in_lower_case(data: object, publication: NgsiPublication) -> Iterator[ModelProblem]:
    source = data.get("source") if isinstance(data, Mapping) else None
    written = source.get("service") if isinstance(source, Mapping) else None
    used = publication.source.service
    if written is not None and written != used:
        message = f"the service {written!r} is read as {used!r}"
        hint = "brokers treat a service as lower case; topics are named after it, so both must agree"
        yield ModelProblem(("source", "service"), message, hint)


def _covered_paths(data: object, publication: NgsiPublication) -> Iterator[ModelProblem]:
    source = data.get("source") if isinstance(data, Mapping) else None
    written = source.get("service_path") if isinstance(source, Mapping) else None
    used = publication.source.service_path
    for path in dict.fromkeys(map(fields.check_service_path, written if isinstance(written, list) else ())):
        if path not in used:
            message = f"the service path {path} is inside another one: it is read once, with that one"
            yield ModelProblem(("source", "service_path"), message, "leave it out")


def _vague_deletions(publication: NgsiPublication) -> Iterator[ModelProblem]:
    missing = records.indistinguishable_parts(publication)
    if publication.source.detect_deletions and publication.message.key != KEY_NONE and missing:
        message = f"a tombstone with `key: {publication.message.key}` does not show which identity was deleted"
        hint = f"they may differ in {', '.join(sorted(missing))}: use `key: identity`, or `detect_deletions: false`"
        yield ModelProblem(("message", "key"), message, hint)


def _key_by_value(publication: NgsiPublication) -> Iterator[ModelProblem]:
    name = records.attribute_of_key(publication)
    if name is not None:
        message = f"`key: {name}` is the value of the attribute {name!r}"
        hint = "entities without it go to quarantine; when it changes, later records may go to another partition"
        yield ModelProblem(("message", "key"), message, hint)


def _rules_left_out(publication: NgsiPublication) -> Iterator[ModelProblem]:
    topics = publication.topics
    if topics.grouping_rules_content is None or topics.compat != CYGNUS_2_19:
        return
    if dropped := GroupingRules.from_json(topics.grouping_rules_content, compat=True).dropped:
        rules = f"rule {dropped[0]} is" if len(dropped) == 1 else f"rules {', '.join(map(str, dropped))} are"
        message = f"grouping {rules} left out, as Cygnus does: it groups nothing"
        hint = "each lacks a member, has an empty one, or a path without a leading slash; correct or remove it"
        yield ModelProblem(("topics", "grouping_rules"), message, hint)
