"""A structure registry for tests: the documented contract of an FMR or a plain SDMX-REST service, faults on demand.

The names below are loaded when they are first used, so that a command line that only lists its commands stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.lazy_names import load_on_request

if TYPE_CHECKING:
    from contexture_sandbox.registry.refusals import Refusal as Refusal
    from contexture_sandbox.registry.remote import RemoteRegistry as RemoteRegistry
    from contexture_sandbox.registry.seeding import seed_codelist as seed_codelist
    from contexture_sandbox.registry.seeding import seed_message as seed_message
    from contexture_sandbox.registry.server import TestRegistry as TestRegistry

__getattr__ = load_on_request(
    __name__,
    {
        "refusals": "Refusal",
        "remote": "RemoteRegistry",
        "seeding": "seed_codelist seed_message",
        "server": "TestRegistry",
    },
)
