"""A stage of a publication, submitted to Spark standalone as the task does it, and what driver and executors cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contexture.java.runtime import find_java
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder, StageResult
from contexture_airflow.spark_class_data import java_options, record_class_data
from contexture_sandbox.ports import LOOPBACK
from tools.bench.engines.accounting import ProcessorTime, all_times, command_line, tree_seconds
from tools.bench.engines.watching import MemoryWatch
from tools.bench.spark_session import SUBMITTED
from tools.cluster.moments import await_found, descendants
from tools.cluster.spark import SparkStandalone

DRIVER = "driver"
EXECUTORS = "executors"
SOURCE = "source"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_SOURCE_VARIABLE = "CONTEXTURE_SOURCE_CONNECTION"


@dataclass(frozen=True, slots=True)
class Staged:
    """What one stage was and cost.

    Attributes:
        result: the job's answer.
        seconds: of the whole submit.
        processor: seconds of `DRIVER` (the submit with its Python), `EXECUTORS` and `SOURCE` (the test broker).
        memory: what each kind of process had at most, in MiB.
    """

    result: StageResult
    seconds: float
    processor: Mapping[str, float]
    memory: Mapping[str, float]

    @property
    def working_seconds(self) -> float:
        """Of the job without its session: pull, prepare and checkpoint, which grow with what there is to do."""
        return sum(seconds for name, seconds in self.result.seconds.items() if name != "session")


@dataclass(slots=True)
class Submits:
    """Submits stages to one Spark.

    Args:
        spark: running.
        folder: for logs and scratch files.
        variables: that driver and executors reach the home by.
    """

    spark: SparkStandalone
    folder: Path
    variables: Mapping[str, str]
    _modules: Path | None = field(default=None, init=False)

    def stage(self, order: StageOrder, url: str, executors: int) -> Staged:
        """Stages what a broker holds, with so many executors of one core each.

        Raises:
            RuntimeError: the job failed; its log's last lines are in the message.
        """
        run = Home(order.home).publication(order.publication.name).run(order.run)
        run.write_order(order)
        workers = [worker.pid for worker in self.spark.workers]
        books = ProcessorTime({EXECUTORS: workers})
        command = self._command(run.order_uri, executors)
        source, before, started = _source_process(), all_times(), time.monotonic()
        usage, memory = self._submit(command, url, workers)
        seconds = time.monotonic() - started
        # The last executor ends a moment after its application.
        await_found(lambda: None if _executors(workers) else True, "end of the executors")
        spent = {SOURCE: tree_seconds(source, all_times()) - tree_seconds(source, before)} if source else {}
        result = run.result()
        if result is None:
            raise RuntimeError("the stage job reported nothing")
        return Staged(result, seconds, {DRIVER: usage, **books.seconds(), **spent}, memory)

    def _submit(self, command: list[str], url: str, workers: list[int]) -> tuple[float, Mapping[str, float]]:
        log = self.folder / "submit.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=self._environment(url),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                with MemoryWatch([process.pid, *workers], kind_of) as memory:
                    _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise RuntimeError(f"the stage ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        return usage.ru_utime + usage.ru_stime, memory.most

    def _command(self, order: str, executors: int) -> list[str]:
        master = f"spark://{LOOPBACK}:{self.spark.port}"
        options = java_options(self._java())
        further = {"spark.driver.extraJavaOptions": options, "spark.cores.max": str(executors)}
        settings = {**SUBMITTED, "spark.master": master, **further}
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        job = Path.cwd() / "spark_jobs" / "stage.py"
        program = str(Path(sys.executable).with_name("spark-submit"))
        return [program, *words, "--py-files", str(self._zip()), str(job), "--order", order]

    def _environment(self, url: str) -> dict[str, str]:
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return {
            **os.environ,
            **self._java(),
            **self.variables,
            _SOURCE_VARIABLE: BrokerConnection(url).to_json(),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPATH": os.pathsep.join(str(Path.cwd() / name) for name in ("include", ".")),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(self.spark.folders.configuration),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(scratch),
            "TMPDIR": str(scratch),
        }

    def _java(self) -> dict[str, str]:
        runtime = find_java()
        return {**runtime.environment(), **record_class_data(runtime, lambda line: None)}

    def _zip(self) -> Path:
        """What executors get; made in a process of its own, for making it imports Airflow."""
        if self._modules is None:
            program = "import sys, pathlib; from contexture_airflow.spark_submit import modules_zip; "
            words = [sys.executable, "-c", f"{program}print(modules_zip(pathlib.Path(sys.argv[1])))", str(self.folder)]
            own = {**os.environ, "AIRFLOW_HOME": str(self.folder / "airflow")}
            output = subprocess.run(words, env=own, stdout=subprocess.PIPE, text=True, check=True).stdout
            self._modules = Path(output.splitlines()[-1])
        return self._modules


def kind_of(command: str) -> str | None:
    """Whether a process of Spark is the driver's or an executor's, whichever language it runs."""
    if "deploy.SparkSubmit" in command or "spark_jobs/stage.py" in command:
        return DRIVER
    return EXECUTORS if _EXECUTOR in command or "pyspark.daemon" in command else None


def _executors(workers: list[int]) -> list[int]:
    return [each for root in workers for each in descendants(root) if _EXECUTOR in command_line(each)]


def _source_process() -> int | None:
    """The test broker that this process has started."""
    mine = (process for process, each in all_times().items() if each.parent == os.getpid())
    return next((process for process in mine if "context-broker" in command_line(process)), None)
