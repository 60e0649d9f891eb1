"""The machine and the versions that figures belong to."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from contexture.java.runtime import find_java
from contexture_sandbox import jars

PACKAGES = ("confluent-kafka", "pyspark", "great-expectations", "apache-airflow", "pyarrow", "orjson")
_BUSY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Machine:
    """What everything ran on.

    Attributes:
        processor: its model.
        cores: that this process may use.
        memory_gib: of the machine.
        system: kernel and its release.
        python, java, kafka: versions.
        packages: versions by name.
        load_before: processes that wanted a core in the minute before the bench.
    """

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    java: str
    kafka: str
    packages: dict[str, str]
    load_before: float

    @property
    def busy(self) -> bool:
        """Returns whether other programs were at work: ratios are still usable then, rates are not."""
        return self.load_before > self.cores * _BUSY_SHARE

    def lines(self) -> tuple[tuple[str, str], ...]:
        """All of it, as names and values for people."""
        return (
            ("processor", f"{self.processor}, {self.cores} cores, {self.memory_gib} GiB of memory"),
            ("system", f"{self.system}, Python {self.python}, Java {self.java}, Kafka {self.kafka}"),
            ("packages", ", ".join(f"{name} {number}" for name, number in self.packages.items())),
            ("load before", f"{self.load_before:.1f}{' (busy: trust no single figure)' if self.busy else ''}"),
        )

    def as_dict(self) -> dict[str, object]:
        """All of it for JSON."""
        return asdict(self)


def this_machine() -> Machine:
    """The machine as it is now."""
    runtime = find_java()
    return Machine(
        processor=_processor(),
        cores=_cores(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        java=f"{runtime.version} ({runtime.origin})",
        kafka=jars.KAFKA_VERSION,
        packages={name: version(name) for name in PACKAGES},
        load_before=os.getloadavg()[0],
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
