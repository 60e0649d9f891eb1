"""The official JavaScript SDK of CloudEvents as a reader, from the npm registry: pinned by version and digest."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from contexture.java.cache import exclusive

SOURCES = Path(__file__).parents[1] / "javascript"


def installed() -> Path:
    """The folder of the reader with the SDK beside it, fetched once; skips the test where that can't be had."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here: the JavaScript SDK reads nothing")
    lock = (SOURCES / "package-lock.json").read_bytes()
    with exclusive("javascript") as cache:
        folder = cache / f"javascript-{hashlib.sha256(lock).hexdigest()[:12]}"
        if not (folder / "complete").is_file():
            _fetch(folder)
    shutil.copy(SOURCES / "read.cjs", folder)
    return folder


def _fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / name, folder)
    npm = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
    done = subprocess.run(npm, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"npm could not fetch the JavaScript SDK: {done.stderr.strip()[-300:]}")
    (folder / "complete").touch()


def read(folder: Path, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What the SDK finds in each message: its `event` and `data`, or its `error`."""
    given = [
        {
            "headers": {name: _base64(value) for name, value in message.headers() or []},
            "key": _base64(message.key()),
            "value": _base64(message.value()),
        }
        for message in messages
    ]
    done = subprocess.run(
        ["node", "read.cjs"],
        cwd=folder,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _base64(content: bytes | str | None) -> str | None:
    return None if content is None else b64encode(content.encode() if isinstance(content, str) else content).decode()
