"""Which of Arrow's filesystems an address leads to, and how much of one it is."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pyarrow import fs

from contexture.errors import ConfigurationError, ContextureError, RetriableError

HOME_VARIABLE = "CONTEXTURE_HOME"
_OBJECT_STORE = "s3"
_WITHOUT_PORTS = frozenset({"s3", "gs", "gcs"})
# Opening an address of Amazon's asks where its bucket is. Arrow tells a network that is away by the class of a bucket
# that is not there.
_AWAY = re.compile(r"NETWORK_CONNECTION|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|SLOW_DOWN|THROTTLING")


def open_filesystem(root: str) -> tuple[Any, str]:
    """The filesystem behind a local path or a URI, and the path it knows the address by, without a slash at its end.

    Raises:
        ConfigurationError: no filesystem answers to the address, or it has credentials in it.
        RetriableError: the object store is away.
    """
    try:
        if "://" not in root:
            return fs.LocalFileSystem(), root.rstrip("/")
        _refuse_credentials(urlsplit(root))
        filesystem, base = fs.FileSystem.from_uri(_with_options(root))
    except (ValueError, OSError) as error:
        # A chain would show the address as a whole, and what is behind its question mark may be a secret.
        raise _not_opened(root, str(error)) from None
    return filesystem, base.rstrip("/")


def _not_opened(root: str, told: str) -> ContextureError:
    shown = root.partition("?")[0]
    told = told.replace(root, shown)
    if _AWAY.search(told):
        return RetriableError(
            f"the storage {shown!r} does not answer: {told}",
            next_step="see that it runs and is reached from here, then retry the task: nothing is lost or sent twice",
            home=shown,
        )
    return ConfigurationError(
        f"the storage address {shown!r} can not be opened: {told}",
        next_step=f"set {HOME_VARIABLE} to a folder, or to a URI such as s3://bucket/contexture",
        home=shown,
    )


def knows_folders(filesystem: Any) -> bool:
    """Whether folders and renames are its own. S3 has names only: a folder is a request a level, a rename a copy."""
    return bool(filesystem.type_name != _OBJECT_STORE)


def _refuse_credentials(address: SplitResult) -> None:
    """The address stands in logs, errors and the orders of runs; no password does.

    A secret with a slash in it ends what is taken for the host, but where a host is a bucket it has no colon.
    """
    before_host = address.netloc.rpartition("@")[0]
    if ":" in before_host or (address.scheme in _WITHOUT_PORTS and ":" in address.netloc):
        raise ConfigurationError(
            f"the storage address {address.scheme}://… has credentials in it, and it stands in logs and orders",
            next_step=f"take them out of {HOME_VARIABLE}, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "(or what the storage has in their place); renew them if runs have used the address",
        )


def _with_options(root: str) -> str:
    # Without it S3 hears of a file before its first byte and after its last: three requests instead of one.
    return f"{root}?allow_delayed_open=true" if root.startswith(f"{_OBJECT_STORE}://") and "?" not in root else root
