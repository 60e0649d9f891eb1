"""Free TCP ports on the loopback address."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

from contexture.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
_LOWEST_PORT = 10240
_ATTEMPTS = 500
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Returns one port of 127.0.0.1 that is free now."""
    return free_ports(1)[0]


def free_ports(count: int) -> tuple[int, ...]:
    """Returns `count` different ports of 127.0.0.1 that are free now.

    They lie below the range from which the system numbers outgoing connections. A server that is stopped and started
    again on the same port would otherwise find it taken: by some connection, or by one of its own clients, whose
    attempts to reconnect on the loopback address can end up connected to themselves.

    Raises:
        ConfigurationError: the machine has no free ports.
    """
    with ExitStack() as held:
        return tuple(_bound_port(held) for _ in range(count))


def listening(port: int) -> bool:
    """Returns whether a program accepts connections on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _bound_port(held: ExitStack) -> int:
    for _ in range(_ATTEMPTS):
        candidate = random.randrange(_LOWEST_PORT, _first_outgoing_port())
        listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        # As servers do: a port whose last connections are only waiting to be forgotten is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, candidate))
            listener.listen(1)
        except OSError:
            continue
        return candidate
    raise ConfigurationError(
        "no free TCP port was found on 127.0.0.1",
        next_step="stop programs that listen on many ports, or allow this user to listen on ports above 10240",
    )


def _first_outgoing_port() -> int:
    try:
        lowest = int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest = 32768
    return lowest if lowest > _LOWEST_PORT + _ATTEMPTS else 65536
