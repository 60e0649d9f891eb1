"""One sender in a process of its own: `python -m tools.bench.sender HOME OUTBOX SHARD SENDER BOOTSTRAP_SERVERS`.

Says `ready`, waits for a line, sends a shard of the outbox as a publish task does, and prints one JSON line: records,
seconds, peak memory, processor seconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from contexture.kafka import ClientSettings
from contexture.sending import Ledger, Publisher, SenderNames
from contexture.storage.home import Home
from tools.bench.outbox_files import PUBLICATION

_STATUS = Path("/proc/self/status")


def main(arguments: list[str]) -> None:
    """Sends the shard and prints the result."""
    home, outbox, shard, sender, bootstrap_servers = arguments
    store = Home(home).publication(PUBLICATION)
    manifest = store.outboxes.manifest(outbox)
    reader = store.reader(manifest, int(shard))
    settings = ClientSettings.from_extra({"bootstrap.servers": bootstrap_servers})
    names, shards = SenderNames(sender), len(manifest.shards)
    # The first run of a publication makes its ledger, long before it sends.
    Ledger(settings, names).prepare(shards)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    before = time.process_time()
    result = Publisher(settings, names, shards=shards).publish(reader)
    answer = {
        "records": result.records_sent,
        "seconds": result.seconds,
        "peak_bytes": peak_bytes(),
        "processor_seconds": time.process_time() - before,
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def peak_bytes() -> int:
    """The largest resident memory of this process so far."""
    if _STATUS.exists():
        # The kernel's other count includes what the parent had when it started us.
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(sys.argv[1:])
