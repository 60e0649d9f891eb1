"""What is sent in a bench: how many records of which size, and their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

ENTITY_BYTES = 300
_PAYLOADS_BYTES = 50_000_000
_MOST_PAYLOADS = 100_000
_POOL_BYTES = 1_000_000
_STEP = 7919


@dataclass(frozen=True, slots=True)
class Load:
    """Records of one size.

    Attributes:
        records: how many.
        value_bytes: of each value.
        headers: of each record; no two records have the same.
        shards: that the outbox is divided into.
    """

    records: int
    value_bytes: int = ENTITY_BYTES
    headers: int = 0
    shards: int = 1

    @property
    def outbox(self) -> str:
        """The name of its outbox."""
        return f"outbox-{self.records}-{self.value_bytes}-{self.headers}-{self.shards}"

    def described(self) -> str:
        """For the table."""
        size = f"{self.value_bytes} bytes" if self.value_bytes < 1000 else f"{self.value_bytes // 1000} kB"
        with_headers = f" with {self.headers} headers" if self.headers else ""
        return f"{self.records:,} records of {size}{with_headers}"

    def payloads(self, file: Path) -> None:
        """Writes the first values, one a line; Kafka's program draws from them at random."""
        count = min(self.records, _MOST_PAYLOADS, max(1, _PAYLOADS_BYTES // self.value_bytes))
        file.write_bytes(b"\n".join(islice(values(self.value_bytes), count)))


def values(size: int) -> Iterator[bytes]:
    """Entities as JSON of so many bytes, no two the same, about as compressible as entities are."""
    return _small(size) if size <= ENTITY_BYTES else _large(size)


def _small(size: int) -> Iterator[bytes]:
    number = 0
    while True:
        text = (
            f"{_head(number)},"
            f'"odometer":{{"type":"Number","value":{number * _STEP % 400_009},"metadata":{{}}}},'
            f'"plate":{{"type":"Text","value":"{_token(number)}","metadata":{{}}}},'
            f'"note":{{"type":"Text","value":"'
        )
        yield f'{text}{"." * (size - len(text) - 3)}"}}}}'.encode()
        number += 1


def _large(size: int) -> Iterator[bytes]:
    """Cut out of a pool of attributes, each time at another place: a hundred kilobytes cost no formatting."""
    pool = "".join(
        f"sensor{number}: type Text, value {_token(number)}, metadata none; "
        for number in range((_POOL_BYTES + size) // 60)
    )
    number = 0
    while True:
        head = f'{_head(number)},"note":"'
        start = number * _STEP % _POOL_BYTES
        room = size - len(head) - 2
        yield f'{head}{pool[start : start + room]}"}}'.encode()
        number += 1


def _head(number: int) -> str:
    return (
        f'{{"id":"urn:ngsi-ld:Vehicle:{number:09d}","type":"Vehicle",'
        f'"speed":{{"type":"Number","value":{number * 37 % 1300 / 10},"metadata":{{}}}}'
    )


def _token(number: int) -> str:
    return blake2b(number.to_bytes(8), digest_size=16).hexdigest()
