"""What a person sees while the demo runs."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from contexture_sandbox.airflow.client import AirflowClient, DagRun


@dataclass
class DemoConsole:
    """The output of the demo; each line of progress has the seconds since the start."""

    terminal: Console = field(default_factory=lambda: Console(highlight=False, width=_width()))
    started: float = field(default_factory=time.monotonic)

    def line(self, text: str, *, style: str = "") -> None:
        """Prints one line of progress."""
        self.terminal.print(f"[dim]{time.monotonic() - self.started:5.0f} s[/dim]  {text}", style=style)

    def step(self, number: int, title: str, look_at: str) -> None:
        """Prints the title of a step, and what to look at."""
        self.terminal.print()
        self.terminal.print(Panel(f"[bold]{number}. {title}[/bold]\n{look_at}", expand=False, border_style="cyan"))

    def table(self, table: Table) -> None:
        """Prints a table."""
        self.terminal.print(table)


def _width() -> int | None:
    """The terminal's width; enough for the tables where there is no terminal."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140


class TaskWatch:
    """Prints each change of a task's state of one run, once."""

    def __init__(self, console: DemoConsole, client: AirflowClient) -> None:
        self._console = console
        self._client = client
        self._printed: set[tuple[str, str, int, str]] = set()

    def __call__(self, run: DagRun) -> None:
        for task in self._client.tasks(run.dag_id, run.run_id):
            key = (run.run_id, task.task_id, task.map_index, task.state or "")
            if task.state not in {"running", "success", "failed", "up_for_retry", "upstream_failed"}:
                continue
            if key not in self._printed:
                self._printed.add(key)
                shard = f"[{task.map_index}]" if task.map_index >= 0 else ""
                took = f" in {task.seconds:.1f} s" if task.state in {"success", "failed"} else ""
                style = "red" if task.state in {"failed", "upstream_failed"} else ""
                self._console.line(f"{run.dag_id}.{task.task_id}{shard}: {task.state}{took}", style=style)
