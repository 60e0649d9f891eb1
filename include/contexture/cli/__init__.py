"""The command line, `contexture …`: one module for each command, imported when that command is called.

Exit codes of all commands: 0 it is as it should be; 1 what was looked at is wrong; 2 the command line is wrong;
3 a source or broker could not be reached.
"""

from __future__ import annotations

from contexture.cli.application import app, main

__all__ = ["app", "main"]
