"""`run`: a whole run through the real scheduler, against a DAG of the same tasks that does nothing."""

from __future__ import annotations

import re
import shutil
from functools import partial
from itertools import islice
from pathlib import Path

from contexture.storage.home import Home
from contexture.storage.orders import StageResult
from contexture_sandbox.context_broker import SeedEntity
from contexture_sandbox.context_broker.entities import CARS, seed_entities
from contexture_sandbox.stack import Stack, StackOptions, project_folder
from tools.bench.measures import Measure, Progress, Target, alternate
from tools.bench.settings import Setting

TARGET = Target(2.0, at_least=False)
PUBLICATION = "vehicles"
EMPTY_DAG = "bench_empty_shape"
_RUN_SECONDS = 600


def run(setting: Setting) -> list[Measure]:
    """The publication `vehicles` as it is shipped, in mode full, each car with a topic of its own."""
    entities = setting.sizes.run_entities
    project = project_folder()
    options = StackOptions(
        publications=_publications(project, setting.folder),
        home=setting.folder / "home",
        prepare=lambda folder: _make_quiet(folder / f"{PUBLICATION}.yaml"),
        dags=_dags(project, setting.folder),
    )
    with Stack(options, setting.progress) as stack:
        stack.broker.load(cars(entities))
        dag_id = f"publish_{PUBLICATION}"
        stack.client.await_dags([dag_id, EMPTY_DAG])
        ours = partial(_seconds, stack, setting.progress, dag_id, {"mode": "full", "reason": "bench"})
        peer = partial(_seconds, stack, setting.progress, EMPTY_DAG, {})
        setting.progress(f"warm-up: ours {ours():.1f} s, the empty DAG {peer():.1f} s")
        figures, others = alternate(ours, peer, setting.sizes.pairs, setting.progress)
        _check_sent(stack, entities)
    what = f"a whole run of {entities:,} entities, from start to end of the DAG run"
    return [Measure("run", what, "s", figures, others, "a DAG of the same tasks, one empty submit", TARGET)]


def _seconds(stack: Stack, progress: Progress, dag_id: str, conf: dict[str, object]) -> float:
    started = stack.client.trigger(dag_id, conf)
    done = stack.client.await_run(dag_id, started.run_id, seconds=_RUN_SECONDS)
    tasks = stack.client.tasks(dag_id, done.run_id)
    if done.state != "success":
        states = ", ".join(f"{task.task_id} {task.state}" for task in tasks)
        raise RuntimeError(f"{dag_id} ended as {done.state}: {states}")
    steps = ", ".join(f"{task.task_id} {task.seconds:.1f}" for task in tasks)
    progress(
        f"{dag_id}: {done.seconds:.1f} s, of which {steps}, and {_stage_steps(stack) if conf else 'nothing inside'}"
    )
    return done.seconds


def _stage_steps(stack: Stack) -> str:
    """What the newest stage job says about itself."""
    runs = stack.options.home / PUBLICATION / "runs"
    newest = max(runs.glob("*/result.json"), key=lambda file: file.stat().st_mtime)
    seconds = StageResult.model_validate_json(newest.read_bytes()).seconds
    return "within stage " + ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())


def _check_sent(stack: Stack, entities: int) -> None:
    """A run that sent nothing would be quick."""
    outboxes = Home(str(stack.options.home)).publication(PUBLICATION).outboxes
    for item in outboxes.all():
        records = outboxes.manifest(item.outbox).records
        if item.status != "concluded" or records != entities:
            raise RuntimeError(f"outbox {item.outbox} is {item.status} with {records} records")


def _publications(project: Path, folder: Path) -> Path:
    """A folder with the one publication."""
    chosen = folder / "publications"
    chosen.mkdir()
    shutil.copy(project / "include" / "publications" / f"{PUBLICATION}.yaml", chosen)
    return chosen


def _make_quiet(file: Path) -> None:
    """Nothing starts by itself."""
    text = re.sub(r"(?m)^schedule:.*$", "schedule: null", file.read_text())
    file.write_text(re.sub(r"(?ms)^resync:.*\Z", "resync: {on_startup: none, on_config_change: none}\n", text))


def _dags(project: Path, folder: Path) -> Path:
    """The project's DAGs and the empty one."""
    both = folder / "dags"
    shutil.copytree(project / "dags", both, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(project / "bench" / "dags" / "empty_shape.py", both)
    return both


def cars(entities: int) -> list[SeedEntity]:
    """So many of the test broker's cars, which the publication reads."""
    kinds, recorded = 6, 13
    seeds = seed_entities(entities * kinds + recorded)
    of_fleet = (one for one in seeds if (one.service, one.service_path) == CARS and one.entity["type"] == "car")
    return list(islice(of_fleet, entities))
