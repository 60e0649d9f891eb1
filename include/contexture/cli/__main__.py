"""`python -m contexture.cli` is `contexture`."""

from __future__ import annotations

from contexture.cli import main

if __name__ == "__main__":
    main()
