"""Secrets in the files that git tracks, as detect-secrets finds them; nothing is asked of any network."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import transient_settings

from tools.audit.detectors import detectors_for

ACCEPTED = "tools/audit/accepted_secrets.json"
_FILES_OF_DIGESTS = frozenset(
    {"uv.lock", "tools/sandbox/contexture_sandbox/kafka-jars.json", "tests/javascript/package-lock.json", ACCEPTED}
)
"""Nothing but digests of packages, jars and accepted values."""
_HEURISTICS = (
    *("sequential_string", "potential_uuid", "likely_id_string", "templated_secret", "prefixed_with_dollar_sign"),
    *("indirect_reference", "not_alphanumeric_string"),
)
"""What is no secret by its form. Comments that allow one are not among them: one file lists what is accepted."""


@dataclass(frozen=True, slots=True, order=True)
class Secret:
    """What looks like one.

    Attributes:
        file: below the root.
        kind: by the name of the detector.
        digest: SHA-1 of the value, in hex; the value is stored nowhere.
        line: of its first occurrence; not part of its identity.
    """

    file: str
    kind: str
    digest: str
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}"


def tracked_files(root: Path) -> list[str] | None:
    """The files that git tracks or would add below a folder; None where there is no git, or no repository."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return sorted(filter(None, done.stdout.split("\0"))) if done.returncode == 0 else None


def secrets_in(root: Path, files: Iterable[str]) -> list[Secret]:
    """What looks like a secret in files below a folder. Uses all processors."""
    by_detectors: dict[frozenset[str], list[str]] = {}
    for file in files:
        text = _text(root / file) if file not in _FILES_OF_DIGESTS else None
        if text and (names := detectors_for(file, text)):
            by_detectors.setdefault(names, []).append(file)
    collection = SecretsCollection(root=str(root))
    for names, some in by_detectors.items():
        with transient_settings(settings(names)):
            collection.scan_files(*some)
    return sorted(Secret(file, each.type, each.secret_hash, each.line_number) for file, each in collection)


def read_accepted(text: str) -> list[Secret]:
    """What was accepted: `{file: {kind: [digest, …]}}`."""
    kinds: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(text)
    return [
        Secret(file, kind, digest)
        for file, by_kind in kinds.items()
        for kind, digests in by_kind.items()
        for digest in digests
    ]


def write_accepted(secrets: Iterable[Secret]) -> str:
    """The text that `read_accepted` reads."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for secret in sorted(set(secrets)):
        kinds.setdefault(secret.file, {}).setdefault(secret.kind, []).append(secret.digest)
    return json.dumps(kinds, indent=1) + "\n"


def settings(detectors: Iterable[str]) -> dict[str, Any]:
    """Asking services whether a secret is theirs is not among the filters, so nothing leaves this machine."""
    return {
        "plugins_used": [{"name": name} for name in sorted(detectors)],
        "filters_used": [{"path": f"detect_secrets.filters.heuristic.is_{name}"} for name in _HEURISTICS],
    }


def _text(file: Path) -> str | None:
    """None for what is no text, or only a name in git."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
