"""Whether somebody listens at the addresses of brokers."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from contexture.kafka.translation import DEFAULT_PORT

_AT_ONCE: Final = 16
_PROTOCOL_MARK: Final = "://"


@dataclass(frozen=True, slots=True)
class Reached:
    """One address: why nobody answers (empty when somebody does), what to do, and how long it took."""

    address: str
    problem: str
    remedy: str
    seconds: float


def reach(addresses: str | Sequence[str], timeout_seconds: float) -> list[Reached]:
    """Tries every address, several at once.

    Args:
        addresses: `host:port,host:port`, or a list of such.
        timeout_seconds: for each.
    """
    parts = addresses.split(",") if isinstance(addresses, str) else addresses
    wanted = [part.strip().rpartition(_PROTOCOL_MARK)[2] for part in parts if part.strip()]
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        return list(threads.map(lambda address: _reach(address, timeout_seconds), wanted))


def _reach(address: str, timeout_seconds: float) -> Reached:
    started = time.monotonic()
    problem, remedy = "", ""
    host, port = parts(address)
    try:
        socket.create_connection((host, port), timeout=timeout_seconds).close()
    except socket.gaierror:
        problem = f"no such host: {host}"
        remedy = "correct its name in bootstrap.servers, or the name service of this machine"
    except ConnectionRefusedError:
        problem = "nobody listens there"
        remedy = "start the broker, or correct its port in bootstrap.servers"
    except TimeoutError:
        problem = f"no answer within {timeout_seconds:.0f} s"
        remedy = "let this machine through the firewall, or correct the address in bootstrap.servers"
    except (OSError, OverflowError) as error:
        problem = f"can't be reached ({type(error).__name__})"
        remedy = "correct the address in bootstrap.servers, or the network of this machine"
    return Reached(address, problem, remedy, time.monotonic() - started)


def parts(address: str) -> tuple[str, int]:
    """Host and port of an address, with Kafka's own port where it names none."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or (host.count(":") and not host.endswith("]")):
        return address.strip("[]"), DEFAULT_PORT
    return host.strip("[]"), int(port)
