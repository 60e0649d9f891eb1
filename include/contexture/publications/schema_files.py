"""JSON Schemas that a publication names: they travel in it, so that Spark's tasks need no file of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from contexture.publications.problems import ModelProblem
from contexture.publications.publication import NgsiPublication, Publication

INDEX_FILE = "vendored.json"
"""Written by `contexture models vendor`: which file holds the schema of which address."""

MAXIMUM_BYTES = 8 * 1024 * 1024
_MOST_FILES = 5000
# The schemas of JSON Schema itself come with the validator.
_BUILT_IN = ("http://json-schema.org/", "https://json-schema.org/")


class ModelFileError(ValueError):
    """A schema can't be read, or refers to one that isn't there; the text says which, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class MissingSchemaError(ModelFileError):
    """A schema refers to one that no file has."""


class SchemaFiles:
    """The schemas below a folder, found by the address that they give themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: Mapping[str, Path] | None = None

    def find(self, address: str) -> Path | None:
        """Returns the file whose schema has this address."""
        if self._known is None:
            self._known = dict(self._listed())
        return self._known.get(address)

    def _listed(self) -> Iterator[tuple[str, Path]]:
        index = self.folder / INDEX_FILE
        if index.is_file():
            entries = read_schema(index).get("schemas")
            listed = entries if isinstance(entries, list) else []
            yield from ((each["id"], self.folder / each["path"]) for each in listed)
            return
        for number, path in enumerate(sorted(self.folder.rglob("*.json"))):
            if number < _MOST_FILES and (address := _address(path)) is not None:
                yield address, path


def search_folder(schema: Path) -> Path:
    """Returns where the schemas lie that one may refer to: the vendored folder around it, or else its own."""
    return next((folder for folder in schema.parents if (folder / INDEX_FILE).is_file()), schema.parent)


def collect_references(roots: list[Path], files: SchemaFiles) -> dict[Path, bytes]:
    """Returns these schemas and all that they refer to, as they are on disk.

    Raises:
        ModelFileError: one can't be read, is missing, or all are too large together.
    """
    pending, found = [root.resolve() for root in roots], dict[Path, bytes]()
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found[path] = _content(path)
        if sum(map(len, found.values())) > MAXIMUM_BYTES:
            raise ModelFileError(f"the schemas hold more than {MAXIMUM_BYTES >> 20} MiB", "choose fewer models")
        pending += [_target(path, ref, files) for ref in external_references(read_schema(path), path.as_uri())]
    return found


def documents(models: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Returns the texts of all schemas that a publication's models need, by their path from its folder.

    Raises:
        ModelFileError: as `collect_references`.
    """
    texts: dict[str, str] = {}
    for relative in sorted(set(models.values())):
        path = folder / relative
        for file, content in collect_references([path], SchemaFiles(search_folder(path.resolve()))).items():
            texts[document_name(file, folder)] = content.decode("utf-8-sig")
    return texts


def document_name(file: Path, folder: Path) -> str:
    """How a schema is called among a publication's documents."""
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def read_schema(path: Path) -> dict[str, object]:
    """Returns the schema of a file.

    Raises:
        ModelFileError: it can't be read, or is no JSON object.
    """
    try:
        schema = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path.name} is not JSON: {error}", "give a JSON Schema") from None
    if not isinstance(schema, dict):
        raise ModelFileError(f"{path.name} is not a JSON object", "give a JSON Schema")
    return schema


def declared_address(schema: Mapping[str, object]) -> str | None:
    """Returns the address that a schema gives itself: `$id`, or `id`, as JSON Schema called it up to draft 4."""
    named = (schema.get(name) for name in ("$id", "id"))
    return next((urldefrag(each)[0] for each in named if isinstance(each, str)), None)


def external_references(schema: Mapping[str, object], own_address: str) -> Iterator[str]:
    """Yields the addresses of other schemas that a schema refers to, each once."""
    declared = schema.get("$id")
    base = urljoin(own_address, declared) if isinstance(declared, str) else own_address
    own = {urldefrag(base)[0], own_address}
    for reference in dict.fromkeys(_references(schema)):
        address = urldefrag(urljoin(base, reference))[0]
        if address not in own and not address.startswith(_BUILT_IN):
            own.add(address)
            yield address


def _references(schema: object) -> Iterator[str]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                yield reference
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _target(source: Path, address: str, files: SchemaFiles) -> Path:
    found = files.find(address)
    if found is None and address.startswith("file:"):
        beside = Path(address.removeprefix("file://"))
        found = beside if beside.is_file() else None
    if found is None:
        raise MissingSchemaError(
            f"{source.name} refers to {address}, which is not a file below {files.folder.name}/",
            "copy models with `contexture models vendor`, which also copies what they refer to",
        )
    return found.resolve()


def _address(path: Path) -> str | None:
    try:
        return declared_address(read_schema(path))
    except ModelFileError:
        # A folder may hold examples and other JSON; only what a schema refers to has to be readable.
        return None


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ModelFileError(f"{path.name} is larger than {MAXIMUM_BYTES >> 20} MiB", "choose smaller models")
        content = path.read_bytes()
        content.decode("utf-8-sig")
    except OSError as error:
        raise ModelFileError(
            f"{path.name} cannot be read: {error.strerror}", "write the path of a schema, from this file's folder"
        ) from None
    except UnicodeDecodeError:
        raise ModelFileError(f"{path.name} is not UTF-8", "save it as UTF-8 text") from None
    return content


_HIDDEN = "model_documents"


def with_models(
    written: object, publication: Publication | None, folder: Path
) -> tuple[Publication | None, list[ModelProblem]]:
    """Returns the publication with the contents of `quality.models`, and what is wrong with them."""
    quality = written.get("quality") if isinstance(written, Mapping) else None
    if isinstance(quality, Mapping) and _HIDDEN in quality:
        return publication, [
            ModelProblem(("quality", _HIDDEN), f"unknown key `{_HIDDEN}`", "leave it out", at_key=True)
        ]
    if not isinstance(publication, NgsiPublication) or not publication.quality.models:
        return publication, []
    try:
        texts = documents(publication.quality.models, folder)
    except ModelFileError as error:
        return publication, [ModelProblem(("quality", "models"), str(error), error.hint)]
    named = {kind: document_name(folder / path, folder) for kind, path in publication.quality.models.items()}
    section = publication.quality.model_copy(update={"models": named, _HIDDEN: texts})
    return publication.model_copy(update={"quality": section}), []
