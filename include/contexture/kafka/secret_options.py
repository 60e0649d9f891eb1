"""Which options of a Kafka client hold secrets, and keeping these out of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

MASK: Final = "***"
_SECRET = re.compile(
    r"password|secret|passphrase|jaas|token(?!\.endpoint)|key\.pem|keystore\.key$|oauthbearer\.config|credential|assertion",
    re.IGNORECASE,
)
# The client quotes what it can't read of this option, from some place in it on.
_REST = re.compile(r"(beginning at:?).*", re.IGNORECASE | re.DOTALL)
_SHORTEST: Final = 4


def is_secret(name: str) -> bool:
    """Whether an option's value must never be shown."""
    return bool(_SECRET.search(name))


def secret_values(options: Mapping[str, object]) -> tuple[str, ...]:
    """The secrets among options, the longest first."""
    found = {str(value) for name, value in options.items() if is_secret(name) and value not in (None, "")}
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """A text of the client about these options, its secrets replaced."""
    for value in secret_values(options):
        if len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    return _REST.sub(rf"\1 {MASK}", text)
