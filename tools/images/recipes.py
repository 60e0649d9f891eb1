"""What each stand-in is made of: a Dockerfile, and the files beside it.

Kept is what docker-compose.yaml relies on: entry points, users and their numbers, environment, the owners of folders
with volumes, and the programs of health checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEBIAN = "contexture-stand-in:debian"
BASE = "contexture-stand-in:base"
APPLICATION = "contexture:0.1.0"
FILES = Path(__file__).with_name("files")

PACKAGES = (
    *("bash", "ca-certificates", "curl", "wget", "socat", "procps", "perl-base"),
    *("openjdk-17-jre-headless", "postgresql-15", "redis-server"),
    # What a CPython that was built on this machine loads.
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3"),
    *("libuuid1", "zlib1g"),
)
"""Of Debian 12, in the one root file system that all stand-ins share."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image.

    Attributes:
        tag: the name that docker-compose.yaml or the Dockerfile has for it.
        lines: its Dockerfile after FROM.
        base: what it is made from.
    """

    tag: str
    lines: tuple[str, ...]
    base: str = BASE

    @property
    def dockerfile(self) -> str:
        """Its Dockerfile."""
        return "\n".join((f"FROM {self.base}", *self.lines, ""))


def _sandbox(outer: int, server: str) -> tuple[str, ...]:
    return (
        "COPY --chown=root sandbox.sh /stand-in",
        "COPY sandbox /opt/sandbox",
        f'ENV PYTHONPATH=/opt/sandbox OUTER_PORT={outer} INNER_PORT={10_000 + outer} SERVER="{server}"',
        'ENTRYPOINT ["bash", "/stand-in"]',
        "CMD []",
    )


def recipes() -> tuple[Recipe, ...]:
    """Returns the recipes in the order of their building.

    Those of the test servers are made from the image `contexture`, which has to be there.
    """
    return (
        Recipe(
            "python:3.11-slim-bookworm",
            (
                "COPY python /usr/local",
                "COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
                "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8",
                # Packages come through the same door as this machine's, whose authority may be a company's own.
                "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt",
                "RUN ldconfig && python3 -m ensurepip && ln -sf pip3 /usr/local/bin/pip",
                'CMD ["python3"]',
            ),
        ),
        Recipe(
            "apache/kafka:4.3.1",
            (
                "RUN useradd --uid 1000 --create-home appuser"
                " && mkdir -p /var/lib/kafka/data /opt/kafka/config /mnt/shared/config /etc/kafka/docker"
                " && chown -R appuser /var/lib/kafka /opt/kafka /mnt/shared /etc/kafka",
                "COPY kafka-libs /opt/kafka/libs",
                "COPY kafka.sh console.properties /etc/kafka/docker/",
                "RUN cd /etc/kafka/docker && touch server.properties"
                " && echo 'Configuration: {Loggers: {Root: {level: INFO}}}' | tee log4j2.yaml tools-log4j2.yaml",
                "USER appuser",
                'VOLUME ["/var/lib/kafka/data"]',
                'CMD ["bash", "/etc/kafka/docker/kafka.sh"]',
            ),
        ),
        Recipe(
            "postgres:17-bookworm",
            (
                "RUN groupmod --gid 999 postgres && usermod --uid 999 --gid 999 postgres"
                " && mkdir -p /var/lib/postgresql/data"
                " && chown -R postgres:postgres /var/lib/postgresql /run/postgresql",
                "COPY postgres.sh /stand-in",
                "ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data",
                'VOLUME ["/var/lib/postgresql/data"]',
                'ENTRYPOINT ["bash", "/stand-in"]',
            ),
        ),
        Recipe(
            "redis:7.2-bookworm",
            (
                "RUN groupmod --gid 999 redis && usermod --uid 999 --gid 999 redis && mkdir /data && chown redis /data",
                "WORKDIR /data",
                'VOLUME ["/data"]',
                'CMD ["redis-server"]',
            ),
        ),
        Recipe(
            "chrislusf/seaweedfs:3.97",
            (
                "COPY weed /usr/bin/weed",
                "COPY seaweedfs.sh /stand-in",
                'VOLUME ["/data"]',
                'ENTRYPOINT ["bash", "/stand-in"]',
            ),
        ),
        Recipe(
            "mongo:7.0-jammy",
            ('VOLUME ["/data/db"]', 'CMD ["socat", "TCP-LISTEN:27017,fork,reuseaddr", "EXEC:/bin/cat"]'),
        ),
        Recipe("fiware/orion:4.3.0", _sandbox(1026, "context-broker"), APPLICATION),
        Recipe("sdmxio/fmr-mysql:12.4.2", _sandbox(8080, "registry --structures 100"), APPLICATION),
    )
