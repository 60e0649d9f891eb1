"""The operational tables as the page asks them: when they are away, the rest is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from contexture.errors import ConfigurationError, RetriableError
from contexture.monitoring.history import History

_Answer = TypeVar("_Answer")
_Otherwise = TypeVar("_Otherwise")


class Tables:
    """Asks the tables until they fail once; `problem` says then what is wrong.

    Args:
        history: the tables; None when there are none.
        problem: why there are none, if something is wrong.
    """

    def __init__(self, history: History | None, problem: str | None = None) -> None:
        self._history = history if history is not None and history.is_there else None
        self.problem = problem

    def ask(self, question: Callable[[History], _Answer], otherwise: _Otherwise) -> _Answer | _Otherwise:
        """The answer, or `otherwise` when there is nobody to ask."""
        if self._history is None:
            return otherwise
        try:
            return question(self._history)
        except (RetriableError, ConfigurationError) as error:
            self._history, self.problem = None, str(error)
            return otherwise

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Within the block, this thread's questions share a connection: for pages that ask much."""
        with ExitStack() as stack:
            self.ask(lambda history: stack.enter_context(history.one_connection()), None)
            yield
