"""Which of Arrow's filesystems an address leads to, and how much of one it is."""

from __future__ import annotations

from typing import Any

from pyarrow import fs

from contexture.errors import ConfigurationError

HOME_VARIABLE = "CONTEXTURE_HOME"
_OBJECT_STORE = "s3"


def open_filesystem(root: str) -> tuple[Any, str]:
    """The filesystem behind a local path or a URI, and the path it knows the address by, without a slash at its end.

    Raises:
        ConfigurationError: no filesystem answers to the address.
    """
    try:
        if "://" not in root:
            return fs.LocalFileSystem(), root.rstrip("/")
        filesystem, base = fs.FileSystem.from_uri(_with_options(root))
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"the storage address {root!r} can not be opened: {error}",
            next_step=f"set {HOME_VARIABLE} to a folder, or to a URI such as s3://bucket/contexture",
            home=root,
        ) from error
    return filesystem, base.rstrip("/")


def knows_folders(filesystem: Any) -> bool:
    """Whether folders and renames are its own. S3 has names only: a folder is a request a level, a rename a copy."""
    return bool(filesystem.type_name != _OBJECT_STORE)


def _with_options(root: str) -> str:
    # Without it S3 hears of a file before its first byte and after its last: three requests instead of one.
    return f"{root}?allow_delayed_open=true" if root.startswith(f"{_OBJECT_STORE}://") and "?" not in root else root
