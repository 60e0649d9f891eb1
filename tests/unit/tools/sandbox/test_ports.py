"""Free ports are free, different, and out of the way of outgoing connections."""

from __future__ import annotations

import socket
from pathlib import Path

from contexture_sandbox.ports import LOOPBACK, free_port, free_ports, listening


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(listening(port) for port in ports)


def test_a_port_can_be_bound() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        assert listening(server.getsockname()[1])


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(10240 <= port < first_outgoing for port in free_ports(20))
