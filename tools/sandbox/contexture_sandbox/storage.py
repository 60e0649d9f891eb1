"""The folder a Kafka node keeps its data in, formatted without starting Java for each.

Kafka's own tool writes two files: `meta.properties`, which names the cluster and the node, and `bootstrap.checkpoint`,
which holds the features of the Kafka version and is the same for every node and cluster. The second is made once per
set of jars, by Kafka's tool, and kept in the cache.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.java.cache import exclusive
from contexture.java.runtime import Java
from contexture_sandbox.listeners import Ports, listener_properties

_CHECKPOINT = "bootstrap.checkpoint"
_META = "meta.properties"
_FORMAT_SECONDS = 120


def random_id() -> str:
    """A random cluster or folder id in Kafka's form: 16 bytes, base64url, no padding, no hyphen in front."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def is_formatted(folder: Path) -> bool:
    """Whether a node can use the folder as it is."""
    return (folder / _META).exists()


def cluster_id(folder: Path) -> str:
    """The cluster a formatted folder belongs to."""
    lines = dict(line.split("=", 1) for line in (folder / _META).read_text().splitlines() if "=" in line)
    return lines["cluster.id"]


def format_folder(folder: Path, *, cluster: str, node: int, template: Path) -> None:
    """Makes `folder` the empty data folder of a node."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, folder / _CHECKPOINT)
    meta = {"version": 1, "cluster.id": cluster, "node.id": node, "directory.id": random_id()}
    draft = folder / f"{_META}.draft"
    draft.write_text("".join(f"{name}={value}\n" for name, value in meta.items()))
    draft.rename(folder / _META)


def checkpoint_template(java: Java, jars: Path) -> Path:
    """The `bootstrap.checkpoint` of these jars; the first call runs Kafka's format tool (2 s).

    Raises:
        ConfigurationError: the tool failed.
    """
    template = jars.with_name(f"{jars.name}.{_CHECKPOINT}")
    with exclusive("kafka-format"), tempfile.TemporaryDirectory(prefix="contexture-format-") as work:
        if not template.exists():
            made = _run_format_tool(java, jars, Path(work))
            draft = template.with_suffix(".draft")
            shutil.copyfile(made, draft)
            draft.rename(template)
    return template


def _run_format_tool(java: Java, jars: Path, work: Path) -> Path:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:3",
        "log.dirs": str(work / "data"),
    } | listener_properties(Ports(client=1, internal=2, controller=3), "PLAINTEXT")
    file = work / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    command = [str(java.command), "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{jars}/*"]
    tool = ["kafka.tools.StorageTool", "format", "-t", random_id(), "-c", str(file)]
    done = subprocess.run(
        [*command, *tool], capture_output=True, text=True, errors="replace", check=False, timeout=_FORMAT_SECONDS
    )
    if done.returncode != 0:
        raise ConfigurationError(
            f"Kafka's format tool failed: {(done.stderr or done.stdout)[-500:].strip()}",
            next_step="check that the Java in use runs and that the temporary folder has space",
        )
    return work / "data" / _CHECKPOINT
