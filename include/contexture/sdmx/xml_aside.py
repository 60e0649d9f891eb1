"""An element that is passed as a whole, because no artefact is in it."""

from __future__ import annotations

from collections.abc import Callable

from contexture.sdmx.limits import Limits
from contexture.sdmx.xml_content import Attributes, Install


def pass_element(install: Install, limits: Limits, done: Callable[[bool], None]) -> None:
    """Passes the element that just began; `done` is called at its end, and told whether it is empty.

    Raises:
        LimitExceededError: by the parser, when it is too deep.
    """
    depth, empty = 1, True

    def start(_: str, __: Attributes) -> None:
        nonlocal depth, empty
        depth += 1
        empty = False
        if depth > limits.depth:
            raise limits.too_deep()

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if not depth:
            done(empty)

    def text(_: str) -> None:
        nonlocal empty
        empty = False

    install(start, end, text)
