"""The secrets of whoever notifies, where no Airflow holds them: a variable, or a file. Never an argument."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.reception.access import Credentials

TOKEN_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN_FILE"  # noqa: S105 - the name of a variable


def credentials(environment: Mapping[str, str], file: Path | None = None) -> Credentials:
    """Whoever shows the token of the variable, or a line of the file (several, while one replaces another).

    Args:
        environment: the variables of the process.
        file: the file; that of the variable when None.

    Raises:
        ConfigurationError: there is no token, the file can't be read, or a token can't be sent in a header.
    """
    named = file or (Path(environment[TOKEN_FILE_VARIABLE]) if environment.get(TOKEN_FILE_VARIABLE) else None)
    tokens = [environment[TOKEN_VARIABLE]] if environment.get(TOKEN_VARIABLE) else []
    tokens += _lines(named) if named is not None else []
    if not tokens:
        raise ConfigurationError(
            "whoever notifies has to show a token, and none is set",
            next_step=f"set {TOKEN_VARIABLE}, or name a file in {TOKEN_FILE_VARIABLE} or by --token-file; for a trial "
            "on this machine alone, say --without-credentials",
        )
    return Credentials.of(tokens=tokens)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(
            f"the file of tokens {file} can't be read: {reason}", next_step="write one token in each of its lines"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]
