"""Children of a fork, and what their parent no longer uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: what is asked for here holds for the rest of it.
_FORKED = """
import gc, os, sys
from contexture.kafka import ClientSettings, clients
from contexture.kafka.callbacks import ClientCallbacks

class Kept:
    def __init__(self):
        self.itself = self
    def __del__(self):
        os.write(1, b"ended ")

if sys.argv[1] == "a client":
    clients.admin(ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:9"}), ClientCallbacks())
gc.disable()
Kept()
child = os.fork()
if not child:
    gc.collect()
    os._exit(0)
os.waitpid(child, 0)
os.write(1, b"| ")
gc.collect()
os._exit(0)
"""


@pytest.mark.parametrize(("made", "output"), [("a client", "| ended "), ("nothing", "ended | ended ")])
def test_a_forked_child_ends_nothing_of_a_process_that_has_clients(made: str, output: str) -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED, made], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == output
