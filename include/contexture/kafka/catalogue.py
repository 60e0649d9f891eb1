"""What properties the installed client of Kafka has, as it describes them itself."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

APPLIES: Final = {"P": "producer", "C": "consumer", "*": "all"}
"""The kinds of clients, by the client's sign for them."""

_ROW: Final = re.compile(
    r"(?P<name>\S+) +\| +(?P<applies>[CP*]) +\|(?P<range>[^|]*)\|(?P<default>.*?)\| (?:high|medium|low) +\|"
    r"(?P<words>.*)"
)
_ALIAS: Final = "Alias for `"
_FEATURES: Final = "builtin.features"
_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True)
class Known:
    """A property as the client describes it; `alias_of` names the one it is another name of."""

    name: str
    applies_to: str
    range: str
    default: str
    description: str
    alias_of: str


@cache
def catalogue() -> Mapping[str, Known]:
    """What the installed client knows, by name."""
    from confluent_kafka import cimpl

    # Symbols of librdkafka are found through the module that is linked to it, however it was installed.
    library = ctypes.CDLL(cimpl.__file__)
    found: dict[str, Known] = {}
    for known in _parsed(_described(library)):
        # What stands among the properties of topics too counts as it stands before.
        found.setdefault(known.name, known)
    # The table names what any client may have, not what this one was built with.
    found[_FEATURES] = replace(found[_FEATURES], default=_features(library))
    return found


def _described(library: ctypes.CDLL) -> str:
    """The table of its properties that the client prints; Python's client shows it nowhere else."""
    system = ctypes.CDLL(None)
    system.fdopen.restype = ctypes.c_void_p
    system.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
    system.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.TemporaryFile() as file:
        stream = system.fdopen(os.dup(file.fileno()), b"w")
        library.rd_kafka_conf_properties_show(stream)
        system.fclose(stream)
        file.seek(0)
        return file.read().decode()


def _features(library: ctypes.CDLL) -> str:
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_destroy.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_get.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    text, size = ctypes.create_string_buffer(_LONGEST), ctypes.c_size_t(_LONGEST)
    configuration = library.rd_kafka_conf_new()
    library.rd_kafka_conf_get(configuration, _FEATURES.encode(), text, ctypes.byref(size))
    library.rd_kafka_conf_destroy(configuration)
    return text.value.decode()


def _parsed(text: str) -> Iterator[Known]:
    for row in filter(None, map(_ROW.fullmatch, text.splitlines())):
        words = row["words"].strip()
        alias = words.removeprefix(_ALIAS).partition("`")[0] if words.startswith(_ALIAS) else ""
        yield Known(row["name"], row["applies"], row["range"].strip(), row["default"].strip(), words, alias)
