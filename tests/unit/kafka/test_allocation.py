"""The C library's pieces of memory that lie aside."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# In a process of its own: what is asked for here holds for the rest of it.
_PIECES_ASIDE = """
import ctypes
from contexture.kafka.clients import tune_malloc

class Numbers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keep")]

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
library.mallinfo2.restype = Numbers

def pieces_aside():
    # The list stays until they are counted: where its own memory borders on what was never used, freeing it merges all.
    places = [library.malloc(100) for _ in range(1000)]
    for place in places:
        library.free(place)
    return library.mallinfo2().smblks

before = pieces_aside()
tune_malloc()
print(before > 500, pieces_aside())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries set no pieces aside")
def test_small_pieces_no_longer_lie_aside():
    command = [sys.executable, "-c", _PIECES_ASIDE]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["True", "0"]
