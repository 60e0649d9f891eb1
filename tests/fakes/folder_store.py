"""An S3 server that stores folders, as SeaweedFS does: a folder is still there when its last file is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_ETAG = '"0"'


class FolderStore:
    """Buckets, folders and files in memory.

    As SeaweedFS 3.97 with `-s3.allowEmptyFolder`: a list with a delimiter shows empty folders, a deletion of many keys
    deletes files only, and the deletion of a folder that is not empty fails.
    """

    def __init__(self) -> None:
        self.url = ""
        self.lock = Lock()
        self.buckets = set[str]()
        self.files = dict[str, bytes]()
        self.folders = set[str]()
        self.markers = set[str]()
        self.requests = list[str]()

    def put(self, path: str, content: bytes) -> None:
        """Stores a file, or a folder if the path ends with a slash, with all folders above it."""
        parts = path.rstrip("/").split("/")
        above = len(parts) + (1 if path.endswith("/") else 0)
        self.folders |= {"/".join(parts[:length]) for length in range(2, above)}
        if path.endswith("/"):
            self.markers.add(path)
        else:
            self.files[path] = content

    def delete(self, path: str) -> bool:
        """Deletes a file or an empty folder; returns False for a folder that is not empty."""
        if not path.endswith("/"):
            self.files.pop(path, None)
            return True
        if any(each.startswith(path) for each in (*self.files, *self.folders)):
            return False
        self.folders.discard(path.rstrip("/"))
        self.markers.discard(path)
        return True

    def listed(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """Returns the keys below a prefix, and the folders in it where there is a delimiter."""
        keys = sorted(each for each in (*self.files, *self.markers) if each.startswith(prefix))
        if not delimiter:
            return keys, []
        below = [*keys, *(f"{each}/" for each in self.folders if f"{each}/".startswith(prefix))]
        tails = {each: each.removeprefix(prefix).split(delimiter) for each in below}
        groups = {f"{prefix}{parts[0]}/" for parts in tails.values() if len(parts) > 1}
        return [each for each in keys if len(tails[each]) == 1], sorted(groups)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: FolderStore

    def do_PUT(self) -> None:
        body, path = self._body(), self._path()
        source = self.headers.get("x-amz-copy-source")
        if "/" not in path:
            self.store.buckets.add(path)
            return self._answer(200)
        if path.split("/")[0] not in self.store.buckets:
            return self._fail(404, "NoSuchBucket")
        self.store.put(path, self.store.files[unquote(source).lstrip("/")] if source else body)
        return self._answer(200, b"<CopyObjectResult/>" if source else b"", {"ETag": _ETAG})

    def do_HEAD(self) -> None:
        path = self._path()
        if "/" not in path:
            return self._answer(200 if path in self.store.buckets else 404)
        if path not in self.store.files and path not in self.store.markers:
            return self._answer(404)
        kind = "application/x-directory" if path.endswith("/") else "application/octet-stream"
        return self._answer(200, self.store.files.get(path, b""), {"ETag": _ETAG, "Content-Type": kind})

    def do_GET(self) -> None:
        path = self._path()
        if "/" not in path:
            return self._list(path)
        if path not in self.store.files:
            return self._fail(404, "NoSuchKey")
        return self._answer(200, self.store.files[path], {"ETag": _ETAG})

    def do_POST(self) -> None:
        bucket = self._path()
        keys = [each.text or "" for each in ElementTree.fromstring(self._body()).iter() if each.tag.endswith("Key")]
        for key in keys:
            if not key.endswith("/"):
                self.store.delete(f"{bucket}/{key}")
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def do_DELETE(self) -> None:
        if self.store.delete(self._path()):
            self._answer(204)
        else:
            # SeaweedFS responds 500, which Arrow would repeat for six seconds.
            self._fail(409, "InvalidRequest")

    def _list(self, bucket: str) -> None:
        options = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        keys, groups = self.store.listed(f"{bucket}/{options.get('prefix', '')}", options.get("delimiter", ""))
        contents = "".join(
            f"<Contents><Key>{escape(each.removeprefix(f'{bucket}/'))}</Key>"
            f"<Size>{len(self.store.files.get(each, b''))}</Size>"
            "<LastModified>2026-03-01T12:00:00.000Z</LastModified></Contents>"
            for each in keys
        )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(each.removeprefix(f'{bucket}/'))}</Prefix></CommonPrefixes>"
            for each in groups
        )
        count = f"<KeyCount>{len(keys) + len(groups)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer(200, f"<ListBucketResult>{count}{contents}{prefixes}</ListBucketResult>".encode())

    def _path(self) -> str:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        self.store.requests.append(f"{self.command} {path}")
        # A bucket's own address may end with a slash.
        return path.rstrip("/") if path.count("/") == 1 and path.endswith("/") else path

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        else:
            body = b"".join(iter(self._chunk, b""))
        return _decode(body) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def _fail(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _decode(body: bytes) -> bytes:
    """Returns the content of Amazon's own chunks, which have a checksum behind them."""
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            break
        content, body = content + body[:length], body[length + 2 :]
    return content


@contextmanager
def folder_store() -> Iterator[FolderStore]:
    """A server on a free port of 127.0.0.1 while the block runs."""
    store = FolderStore()
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        store.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
