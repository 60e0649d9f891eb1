"""The names that Kafka takes for topics, as a pattern that Python and Java read alike."""

from __future__ import annotations

# The two names that are folders to a file system are not legal either.
TOPIC_NAME = r"(?!\.{1,2}(?:,|$))[A-Za-z0-9._-]{1,249}"
