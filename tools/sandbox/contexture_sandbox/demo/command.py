"""The commands `demo` and `up`."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from contexture_sandbox.demo.console import DemoConsole
from contexture_sandbox.demo.scenario import ENTITIES, STRUCTURES, DemoScenario, prepare_publications
from contexture_sandbox.demo.shell import shell_file
from contexture_sandbox.demo.summary import failed_runs, show, succeeded, summarize
from contexture_sandbox.stack import Stack, StackOptions, project_folder


def demo(home: Path) -> int:
    """Runs the whole scenario; the exit code is 0 only when all that was prepared was read back."""
    console = DemoConsole()
    home = home.absolute()
    shutil.rmtree(home, ignore_errors=True)
    publications = project_folder() / "include" / "publications"
    options = StackOptions(publications, home, entities=ENTITIES, structures=STRUCTURES, prepare=prepare_publications)
    with Stack(options, console.line) as stack:
        console.line(f"Airflow is at {stack.settings.url} (user {stack.settings.login.user})")
        scenario = DemoScenario(stack, console)
        scenario.run()
        console.terminal.print()
        console.line("reading Kafka back")
        rows = summarize(scenario)
        show(rows, scenario, console)
        scenario.problems += failed_runs(scenario)
    for problem in scenario.problems:
        console.line(problem, style="red")
    ok = succeeded(rows, scenario)
    console.line("all that was prepared is in Kafka, once" if ok else "the demo failed", style="green" if ok else "red")
    return 0 if ok else 1


def up(options: StackOptions) -> int:
    """Runs the platform until Ctrl-C."""
    console = DemoConsole()
    with Stack(options, console.line) as stack, shell_file(stack.folder, stack.settings) as shell:
        login = stack.settings.login
        console.terminal.print(
            f"\n  Airflow         {stack.settings.url}   user {login.user}   password {login.password}"
        )
        console.terminal.print(f"  context broker  {stack.broker.url}/v2/entities")
        console.terminal.print(f"  registry        {stack.registry.url}/sdmx/v2/structure/*/*/*/*?detail=allstubs")
        console.terminal.print(f"  Kafka           {stack.kafka.bootstrap_servers}")
        console.terminal.print(f"  publications    {stack.publications} (edit them while it runs; they stay)")
        console.terminal.print(f"  files           {options.home}")
        console.terminal.print(f"  commands        . {shell}   then, in that terminal: contexture status")
        for name in stack.settings.displaced:
            variable = f"AIRFLOW_CONN_{name.upper()}"
            console.terminal.print(f"  {variable} of this terminal is not used: the sandbox has its own {name}")
        console.terminal.print("\n  Ctrl-C ends all of it.\n")
        _wait(stack)
    return 0


def own_publications() -> Path:
    """The folder of publications that the environment names, or else the project's own."""
    return Path(os.environ.get("CONTEXTURE_PUBLICATIONS") or project_folder() / "include" / "publications")


def _wait(stack: Stack) -> None:
    """Returns at Ctrl-C, or when a service of Airflow has ended."""
    try:
        while stack.airflow.failed() is None:
            signal.sigtimedwait([], 1)
    except KeyboardInterrupt:
        return
