"""Files on a local disk or an object store, by paths relative to one root.

Only this module knows which file system is behind them.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import pyarrow as pa
from pyarrow import fs

from contexture.errors import ConfigurationError, ContextureError, DefectError, RetriableError

HOME_VARIABLE = "CONTEXTURE_HOME"
_OBJECT_STORE = "s3"
_WITHOUT_PORTS = frozenset({"s3", "gs", "gcs"})
# Opening an address of Amazon's requests where its bucket is. Arrow reports an unreachable network by the same class as
# a missing bucket.
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
        raise _open_error(root, str(error)) from None
    return filesystem, base.rstrip("/")


def create_bucket(root: str) -> bool:
    """Makes the bucket of an S3 address if it is not there; returns whether the address has a bucket.

    The server is the one that `open_filesystem` reaches: `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL`.

    Raises:
        ConfigurationError: no filesystem answers to the address, or it has credentials in it.
        RetriableError: the object store is away, or refuses to make the bucket.
    """
    if not root.startswith(f"{_OBJECT_STORE}://"):
        return False
    option = "allow_bucket_creation=true"
    filesystem, base = open_filesystem(f"{root}{'&' if '?' in root else '?'}{option}")
    bucket = base.partition("/")[0]
    try:
        filesystem.create_dir(bucket)
    except OSError as error:
        raise RetriableError(
            f"the bucket {bucket!r} could not be made: {error}",
            next_step="check that the object store runs and that this user may make buckets, or make it by hand",
            bucket=bucket,
        ) from error
    return True


def _open_error(root: str, reason: str) -> ContextureError:
    shown = root.partition("?")[0]
    reason = reason.replace(root, shown)
    if _AWAY.search(reason):
        return RetriableError(
            f"the storage {shown!r} does not respond: {reason}",
            next_step=(
                "check that it runs and can be reached from here, then retry the task: nothing is lost or sent twice"
            ),
            home=shown,
        )
    return ConfigurationError(
        f"the storage address {shown!r} cannot be opened: {reason}",
        next_step=f"set {HOME_VARIABLE} to a folder, or to a URI such as s3://bucket/contexture",
        home=shown,
    )


def knows_folders(filesystem: Any) -> bool:
    """Whether folders and renames are its own. S3 has names only: a folder is a request a level, a rename a copy."""
    return bool(filesystem.type_name != _OBJECT_STORE)


def _refuse_credentials(address: SplitResult) -> None:
    """Rejects an address with a password, because addresses are in logs, errors and the orders of runs.

    A secret with a slash in it ends what is taken for the host, but where a host is a bucket it has no colon.
    """
    before_host = address.netloc.rpartition("@")[0]
    if ":" in before_host or (address.scheme in _WITHOUT_PORTS and ":" in address.netloc):
        raise ConfigurationError(
            f"the storage address {address.scheme}://… has credentials in it, and it would be in logs",
            next_step=f"take them out of {HOME_VARIABLE}, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "(or what the storage has in their place); renew them if runs have used the address",
        )


def _with_options(root: str) -> str:
    # Without it S3 hears of a file before its first byte and after its last: three requests instead of one.
    return f"{root}?allow_delayed_open=true" if root.startswith(f"{_OBJECT_STORE}://") and "?" not in root else root


_PIECE_BYTES = 1 << 20
# Up to here an object store gets a file in one request, which is done or not. Above it come parts, and Arrow's stream,
# when an error closes it, puts together those that have arrived.
_ONE_REQUEST_BYTES = 4 << 20
# Arrow reports damage by the same class as an unreachable storage.
_DAMAGE = re.compile(r"CRC checksum|[Tt]hrift|[Cc]orrupt|[Mm]agic bytes|[Uu]nexpected end of stream|[Dd]ecompress")


class FileTree:
    """A folder tree below one root, with whole-file writes that are either there or not.

    Args:
        root: a local path, or a URI that `pyarrow.fs.FileSystem.from_uri` knows (`fsspec+memory://…` and the like for
            what only fsspec knows).

    Raises:
        ConfigurationError: no filesystem answers to the address.
    """

    def __init__(self, root: str) -> None:
        self.root = root if "://" in root else str(Path(root).expanduser().absolute())
        self.filesystem, self._base = open_filesystem(self.root)
        self._has_folders = knows_folders(self.filesystem)
        self._deletes_deepest_first = False

    def __reduce__(self) -> tuple[type[FileTree], tuple[str]]:
        # A task of Spark opens the filesystem in its own process.
        return type(self), (self.root,)

    @property
    def is_local(self) -> bool:
        """Whether the files lie on this machine's disks (or on what is mounted like one), by a plain path."""
        return "://" not in self.root

    def path(self, relative: str) -> str:
        """The path that `self.filesystem` knows the file by."""
        return f"{self._base}/{relative}" if relative else self._base

    def uri(self, relative: str) -> str:
        """The address that Spark and people know the file by."""
        return f"{self.root.rstrip('/')}/{relative}" if relative else self.root

    def exists(self, relative: str) -> bool:
        with self.translate_errors(relative):
            return bool(self.filesystem.get_file_info(self.path(relative)).type != fs.FileType.NotFound)

    def read(self, relative: str) -> bytes:
        """The whole file.

        Raises:
            FileNotFoundError: there is none.
            RetriableError: the storage did not answer.
        """
        with self.translate_errors(relative), self.filesystem.open_input_stream(self.path(relative)) as stream:
            return bytes(stream.read())

    def read_head(self, relative: str, size: int) -> bytes:
        """The first bytes of a file. Raises as `read`."""
        with self.translate_errors(relative), self.filesystem.open_input_stream(self.path(relative)) as stream:
            return bytes(stream.read(size))

    def write(self, relative: str, content: bytes) -> None:
        """Puts a file in place as a whole: a reader sees the old content or the new, never a part."""
        if self._has_folders or len(content) > _ONE_REQUEST_BYTES:
            with self.write_atomically(relative) as temporary:
                self._fill(temporary, content)
        else:
            with self.translate_errors(relative):
                self._fill(self.path(relative), content)

    @contextmanager
    def write_atomically(self, relative: str) -> Iterator[str]:
        """A path to write to; the file takes its real name when the block ends without an error."""
        with self.translate_errors(relative):
            final = self.path(relative)
            folder, name = final.rsplit("/", 1)
            if self._has_folders:
                self.filesystem.create_dir(folder, recursive=True)
            temporary = f"{folder}/.{name}.{uuid.uuid4().hex}"
            try:
                yield temporary
                self.filesystem.move(temporary, final)
            except BaseException:
                self._forget(temporary)
                raise

    def copy(self, source: str, target: str) -> None:
        """Copies one file, whole."""
        with self.write_atomically(target) as temporary:
            self.filesystem.copy_file(self.path(source), temporary)

    def files(self, folder: str, suffix: str = "") -> list[str]:
        """Names of the files in a folder (not below it), sorted; none if the folder is not there."""
        return sorted(info.base_name for info in self._entries(folder, fs.FileType.File) if _is_ours(info, suffix))

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder, sorted."""
        return sorted(info.base_name for info in self._entries(folder, fs.FileType.Directory))

    def written_at(self, folder: str) -> dict[str, datetime]:
        """When each entry of a folder, or what lies below it, was written last by the storage's own clock.

        Hidden files are included. Entries without a file, and files of which the storage has no time, are not.
        """
        with self.translate_errors(folder):
            selector = fs.FileSelector(self.path(folder), allow_not_found=True, recursive=True)
            found = self.filesystem.get_file_info(selector)
        above, newest = f"{self.path(folder).strip('/')}/", dict[str, datetime]()
        for info in found:
            if info.type == fs.FileType.File and info.mtime is not None:
                # Filesystems do not agree on whether a path begins with a slash.
                name = info.path.lstrip("/").removeprefix(above).partition("/")[0]
                newest[name] = max(newest.get(name, info.mtime), info.mtime)
        return newest

    def size(self, relative: str) -> int:
        with self.translate_errors(relative):
            return int(self.filesystem.get_file_info(self.path(relative)).size)

    def bytes_in(self, folder: str) -> int:
        """Bytes of all files in a folder (not below it), as one look at it shows; 0 if the folder is not there."""
        return sum(info.size or 0 for info in self._entries(folder, fs.FileType.File) if _is_ours(info, ""))

    def sha256(self, relative: str) -> str:
        """Returns the SHA-256 of one file, as hexadecimal digits."""
        digest = hashlib.sha256()
        with self.translate_errors(relative), self.filesystem.open_input_stream(self.path(relative)) as stream:
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
        return digest.hexdigest()

    def remove(self, relative: str) -> None:
        """Removes a file or a whole folder; nothing happens when it is not there."""
        with self.translate_errors(relative):
            kind = self.filesystem.get_file_info(self.path(relative)).type
            if kind == fs.FileType.Directory:
                self._remove_folder(self.path(relative))
            elif kind == fs.FileType.File:
                self.filesystem.delete_file(self.path(relative))

    @contextmanager
    def translate_errors(self, relative: str) -> Iterator[None]:
        """Within the block, what the filesystem raises becomes a `RetriableError`, but for `FileNotFoundError`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RetriableError(
                f"the storage could not read or write {relative!r}: {error.strerror or error}",
                next_step=f"make room or repair {self.root}, then retry the task: nothing is lost or sent twice",
                home=self.root,
                path=relative,
            ) from error

    @contextmanager
    def translate_read_errors(self, relative: str) -> Iterator[None]:
        """As `translate_errors`; and what is no Parquet (any more) becomes a `DefectError`."""
        with self.translate_errors(relative):
            try:
                yield
            except (pa.ArrowException, UnicodeDecodeError) as error:
                raise damaged(relative, type(error).__name__) from error
            except OSError as error:
                if error.errno is None and _DAMAGE.search(str(error)):
                    raise damaged(relative, type(error).__name__) from error
                raise

    def _fill(self, path: str, content: bytes) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(content)

    def _remove_folder(self, path: str) -> None:
        if not self._deletes_deepest_first:
            try:
                self.filesystem.delete_dir(path)
            except FileNotFoundError:
                return
            except OSError:
                if self._has_folders:
                    raise
                # A server that stores folders (SeaweedFS) refuses one with an empty folder in it, which Arrow leaves
                # behind. It is remembered, because Arrow repeats the refused request for six seconds.
                self._deletes_deepest_first = True
            else:
                return
        for info in self.filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            if info.type == fs.FileType.Directory:
                self._remove_folder(info.path)
        with suppress(FileNotFoundError):
            self.filesystem.delete_dir(path)

    def _entries(self, folder: str, kind: Any) -> list[Any]:
        with self.translate_errors(folder):
            selector = fs.FileSelector(self.path(folder), allow_not_found=True)
            return [info for info in self.filesystem.get_file_info(selector) if info.type == kind]

    def _forget(self, path: str) -> None:
        # The error that brought us here is the one to report, so a failing clean-up stays quiet.
        try:
            self.filesystem.delete_file(path)
        except OSError:
            return


def damaged(relative: str, why: str) -> DefectError:
    """The error of a file that is not what Contexture wrote."""
    return DefectError(
        f"the file {relative!r} is damaged: it is not what was written there ({why})",
        next_step="restore it from a backup, or see the how-to on recovering; report this if nothing has damaged the "
        "storage",
        path=relative,
    )


def _is_ours(info: Any, suffix: str) -> bool:
    return not info.base_name.startswith((".", "_")) and info.base_name.endswith(suffix)
