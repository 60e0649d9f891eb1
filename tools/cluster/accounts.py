"""Whom a server runs as that refuses to be run by root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contexture.errors import ConfigurationError

UNPRIVILEGED_UID = 65534
"""Of the account that Linux has for programs without rights."""
_PUBLIC = ("/tmp", "/var/tmp")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine; None where commands run as the user who runs the project."""

    user: int | None = None
    group: int | None = None

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The command, run as this user."""
        plain = [str(word) for word in words]
        if self.user is None:
            return plain
        # A change of user resets the signal that ends a process with its parent, so it is set again.
        identity = [f"--reuid={self.user}", f"--regid={self.group}", "--clear-groups", "--pdeathsig", "KILL"]
        return ["setpriv", *identity, "--", *plain]

    def folder(self, prefix: str) -> Path:
        """A new temporary folder that belongs to the user, in a place that it can reach.

        Raises:
            ConfigurationError: there is none.
        """
        if self.user is None:
            return Path(tempfile.mkdtemp(prefix=prefix))
        for parent in map(Path, (tempfile.gettempdir(), *_PUBLIC)):
            if _open_to_all(parent):
                made = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
                self.own(made)
                return made
        raise ConfigurationError(
            f"there is no temporary folder that user {self.user} can reach",
            next_step="run it as another user than root",
        )

    def own(self, path: Path) -> None:
        """Makes the user the owner of a file or folder."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)


def unprivileged() -> Account:
    """Returns an account that is not root: the one without rights when root runs the project.

    Raises:
        ConfigurationError: root runs it, and there is no way to another user.
    """
    if os.geteuid() != 0:
        return Account()
    try:
        other = pwd.getpwuid(UNPRIVILEGED_UID)
    except KeyError:
        other = None
    if other is None or shutil.which("setpriv") is None:
        raise ConfigurationError(
            f"PostgreSQL cannot be run by root, and this machine has no user {UNPRIVILEGED_UID} or no program setpriv",
            next_step="run it as another user, or install util-linux",
        )
    return Account(other.pw_uid, other.pw_gid)


def _open_to_all(folder: Path) -> bool:
    """Whether everybody may enter a folder, and those it lies in."""
    try:
        return all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents))
    except OSError:
        return False
