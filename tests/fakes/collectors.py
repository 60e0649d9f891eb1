"""Collectors of lineage and metrics on 127.0.0.1 that keep what they get: OpenLineage, StatsD, OpenTelemetry."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA

_LARGEST_PACKET = 65_535
_MARK = b"caught up"
_WAITING_BYTES = 4_000_000
"""Packets that wait for their reader, which the machine may keep waiting."""


class _HttpCollector:
    """Takes every POST; a context manager."""

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.receive(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def receive(self, body: bytes) -> None:
        """Is called with what was posted, in threads of its own."""
        raise NotImplementedError


@dataclass
class LineageCollector(_HttpCollector):
    """Receives what an OpenLineage client sends.

    Attributes:
        events: in the order they came.
    """

    events: list[dict[str, Any]] = field(default_factory=list)

    def receive(self, body: bytes) -> None:
        self.events.append(json.loads(body))

    @property
    def transport(self) -> str:
        """The setting `[openlineage] transport` that leads here."""
        return json.dumps({"type": "http", "url": self.url})


@dataclass(frozen=True)
class MetricValue:
    """One value that a client sent.

    Attributes:
        name: of the metric, as it came.
        kind: counter, gauge or timer.
        tags: by name.
        value: of a timer in milliseconds.
    """

    name: str
    kind: str
    tags: tuple[tuple[str, str], ...]
    value: float


@dataclass
class StatsdServer:
    """Receives what a StatsD client sends in the notation of InfluxDB; a context manager."""

    values: list[MetricValue] = field(default_factory=list)
    _caught_up: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WAITING_BYTES)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._send(b"")
        self._thread.join()
        self._socket.close()

    @property
    def port(self) -> int:
        """Its UDP port."""
        return int(self._socket.getsockname()[1])

    def catch_up(self) -> None:
        """Returns when all that was sent before is in `values`."""
        self._caught_up.clear()
        self._send(_MARK)
        assert self._caught_up.wait(60), "its reader has ended"

    def _send(self, packet: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(packet, ("127.0.0.1", self.port))

    def _read(self) -> None:
        while packet := self._socket.recv(_LARGEST_PACKET):
            if packet == _MARK:
                self._caught_up.set()
                continue
            self.values.extend(_statsd(line) for line in packet.decode().splitlines())


def _statsd(line: str) -> MetricValue:
    named, _, valued = line.rpartition(":")
    name, *tags = named.split(",")
    value, kind, *_ = valued.split("|")
    kinds = {"c": "counter", "g": "gauge", "ms": "timer"}
    pairs = (tag.partition("=") for tag in tags)
    return MetricValue(name, kinds[kind], tuple(sorted((key, text) for key, _, text in pairs)), float(value))


@dataclass
class OpenTelemetryCollector(_HttpCollector):
    """Receives what an OpenTelemetry client sends by protobuf over HTTP.

    Attributes:
        values: all of them.
        are_deltas: whether counters hold what was added, or totals; both if clients differ.
    """

    values: list[MetricValue] = field(default_factory=list)
    are_deltas: set[bool] = field(default_factory=set)

    def receive(self, body: bytes) -> None:
        self.values.extend(self._points(ExportMetricsServiceRequest.FromString(body)))

    def _points(self, request: ExportMetricsServiceRequest) -> Iterator[MetricValue]:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield from self._values(metric)

    def _values(self, metric: Any) -> Iterator[MetricValue]:
        form = metric.WhichOneof("data")
        kind = {"sum": "counter", "gauge": "gauge", "histogram": "timer", "exponential_histogram": "timer"}[form]
        data = getattr(metric, form)
        if kind == "counter":
            self.are_deltas.add(data.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA)
        for point in data.data_points:
            tags = tuple(sorted((each.key, each.value.string_value) for each in point.attributes))
            value = point.sum if kind == "timer" else getattr(point, point.WhichOneof("value"))
            yield MetricValue(metric.name, kind, tags, float(value))
