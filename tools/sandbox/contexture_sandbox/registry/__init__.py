"""A structure registry for tests: the documented contract of an FMR or a plain SDMX-REST service, faults on demand.

The names below are loaded when they are first used, so that a command line that only lists its commands stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture_sandbox.registry.refusals import Refusal
    from contexture_sandbox.registry.remote import RemoteRegistry
    from contexture_sandbox.registry.seeding import seed_codelist, seed_message
    from contexture_sandbox.registry.server import TestRegistry

_MODULES = {
    "Refusal": "refusals",
    "RemoteRegistry": "remote",
    "TestRegistry": "server",
    "seed_codelist": "seeding",
    "seed_message": "seeding",
}

__all__ = ["Refusal", "RemoteRegistry", "TestRegistry", "seed_codelist", "seed_message"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
