"""The exit codes of commands, for scripts."""

from __future__ import annotations

OK = 0
INVALID = 1
USAGE = 2
UNREACHABLE = 3
