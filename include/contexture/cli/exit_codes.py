"""What a command's exit code tells scripts."""

from __future__ import annotations

OK = 0
INVALID = 1
USAGE = 2
UNREACHABLE = 3
