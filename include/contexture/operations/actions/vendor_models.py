"""Copying JSON Schemas with all they reference from a local copy of Smart Data Models into a user's project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.publications.schema_files import (
    INDEX_FILE,
    MissingSchemaError,
    ModelFileError,
    SchemaFiles,
    collect_references,
    declared_address,
    read_schema,
)

NOTICE_FILE = "NOTICE.md"
_SCHEMA = "schema.json"
_NOTICE = """# Data models from elsewhere

The JSON Schemas below this folder are copies, not changed, of data models of the Smart Data Models initiative
(https://smartdatamodels.org), which publishes them under the Creative Commons Attribution 4.0 International licence
(https://creativecommons.org/licenses/by/4.0/). Keep this notice beside them. Files of other origin, if you chose any,
keep the terms of their authors.
"""


@dataclass(frozen=True, slots=True)
class Vendored:
    """What was copied: the chosen schemas by model, and how many files in all, both below the target folder."""

    models: dict[str, str]
    files: int


def vendor(chosen: Sequence[str], source: Path, target: Path) -> Vendored:
    """Copies schemas and what they refer to.

    Args:
        chosen: subjects (`dataModel.Weather`, or `Weather`), models (`WeatherObserved`, `Weather/WeatherObserved`), or
            paths of schema files below the source.
        source: a folder with local copies of the repositories of models.
        target: where the copies go, with an index and a notice of their licence.

    Raises:
        ConfigurationError: nothing of that name is there, or a schema that is referred to isn't.
    """
    roots = [path for name in chosen for path in _chosen(name, source)]
    try:
        files = collect_references(roots, SchemaFiles(source))
        entries = [_copy(path, content, source.resolve(), target) for path, content in sorted(files.items())]
    except MissingSchemaError as error:
        raise ConfigurationError(
            str(error), next_step=f"put a copy of the repository that holds it below {source}"
        ) from None
    except ModelFileError as error:
        raise ConfigurationError(str(error), next_step=error.hint) from None
    known = {entry["path"]: entry for entry in [*_earlier(target), *entries]}
    listed = [known[path] for path in sorted(known)]
    (target / INDEX_FILE).write_text(json.dumps({"schemas": listed}, indent=1) + "\n", encoding="utf-8")
    lines = [f"- `{entry['path']}` from {entry['id']}, SHA-256 {entry['sha256']}" for entry in listed]
    (target / NOTICE_FILE).write_text(_NOTICE + "\n".join(lines) + "\n", encoding="utf-8")
    names = {
        path.parent.name if path.name == _SCHEMA else path.stem: _below(path, source.resolve())
        for path in (root.resolve() for root in roots)
    }
    return Vendored(dict(sorted(names.items())), len(entries))


def _chosen(name: str, source: Path) -> list[Path]:
    plain = source / name
    inside = source.resolve()
    if plain.is_file() and plain.resolve().is_relative_to(inside):
        return [plain]
    parts = tuple(part.removeprefix("dataModel.") for part in name.strip("/").split("/"))
    found = [path for path in sorted(source.rglob(_SCHEMA)) if _is_of(path, source, parts)]
    if not found:
        raise ConfigurationError(
            f"{source} has no model or subject {name}",
            next_step="name a subject, a model or a schema file below --from, as its folders are called",
        )
    return found


def _is_of(path: Path, source: Path, parts: tuple[str, ...]) -> bool:
    folders = [source.resolve().name, *path.relative_to(source).parts[:-1]]
    plain = tuple(folder.removeprefix("dataModel.") for folder in folders)
    return any(plain[start : start + len(parts)] == parts for start in range(max(len(plain) - 2, 0), len(plain))) or (
        len(plain) >= len(parts) and plain[-len(parts) :] == parts
    )


def _copy(path: Path, content: bytes, source: Path, target: Path) -> dict[str, str]:
    below = _below(path, source)
    copy = target / below
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    return {
        "id": declared_address(read_schema(path)) or below,
        "path": below,
        "sha256": sha256(content).hexdigest(),
    }


def _earlier(target: Path) -> list[dict[str, str]]:
    index = target / INDEX_FILE
    entries = read_schema(index).get("schemas") if index.is_file() else []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _below(path: Path, source: Path) -> str:
    # The closure stays below --from: that is where addresses are looked up.
    return path.relative_to(source).as_posix() if path.is_relative_to(source) else path.name
