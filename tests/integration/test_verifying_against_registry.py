"""Topics on a real broker against the structure registry that they were made from, damaged on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from builders import registrations
from builders.registrations import registration, submission
from builders.registry import codelist, codelists, urn
from builders.structure_runs import registry_publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import TopicRecord, read_committed
from contexture.operations.verification.against_source import verify_against_source
from contexture.operations.verification.comparison import BASELINE
from contexture.operations.verification.registry_view import RegistryView, open_registry_view
from contexture.operations.verification.result import VerificationResult
from contexture.operations.verification.source_comparison import BEHIND
from contexture.operations.verification.source_view import Met, check_answerable
from contexture.operations.verification.topics import KafkaTopics
from contexture.publications import Publication
from contexture.sources.sdmx.registry import RegistryConnection
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.registry import TestRegistry
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}
NAMES = ("CL_A", "CL_B", "CL_C", "CL_D")
BINARY = {"envelope": "cloudevents-binary"}


class Structures(WholeRuns):
    """A publication of the code lists of a test registry."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, registry: TestRegistry) -> None:
        super().__init__(home, kafka)
        self.registry, self.brokers = registry, kafka.client_settings()
        self.address = registry.url

    def owner(self, **changes: Any) -> Publication:
        return registry_publication(name=self.name, **{"topics": {"topics": [self.topic]}, **changes})

    def submit(self, *names: str, code: str = "M") -> None:
        self.registry.store.clock.advance(60)
        self.registry.submit(codelists(*(codelist(name, "1.0", code) for name in names)))

    def compared(self, owner: Publication, before_walk: Callable[[], object] | None = None) -> VerificationResult:
        topics = KafkaTopics(self.settings, owner)
        with open_registry_view(owner, RegistryConnection(self.address)) as view:
            source = view if before_walk is None else Hooked(view, before_walk)
            return verify_against_source(self.storage.publication(owner.name), owner, topics, source)

    def slip_in(self, record: TopicRecord, **changed: Any) -> None:
        """Another writer sends a record once more, changed."""
        sent = {"value": record.value, "key": record.key, "headers": list(record.headers)}
        producer = Producer(self.brokers)
        producer.produce(self.topic, **{**sent, "partition": record.partition, **changed})
        assert producer.flush(60) == 0


class Hooked:
    """A registry's view; something happens once, when all of it was read."""

    def __init__(self, view: RegistryView, happening: Callable[[], object]) -> None:
        self._view, self._happening = view, happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def walk(self) -> Iterator[Met]:
        """As the view's."""
        yield from self._view.walk()
        self._happening()


@pytest.fixture(params=["fmr", "plain"])
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def city(
    tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch, flavour: str
) -> Iterator[Structures]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestRegistry() if flavour == "fmr" else TestRegistry("plain") as registry:
        url = registry.url if flavour == "fmr" else f"{registry.url}/rest"
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", RegistryConnection(url, timeout_seconds=60).to_json())
        made = Structures(tmp_path, kafka, registry)
        made.address = url
        made.submit(*NAMES)
        yield made


def test_what_runs_publish_is_what_the_registry_holds_and_damage_is_found(city: Structures) -> None:
    owner = city.owner(message=BINARY)
    city.ran(owner, mode="full")
    city.submit("CL_A", code="F")
    city.registry.delete([urn("CL_D")])
    city.ran(owner)
    records = {each.key: each for each in read_committed(city.settings, [city.topic]) if each.value is not None}

    equal = city.compared(owner)
    a, b, c, d = (records[urn(name).encode()] for name in NAMES)
    city.slip_in(a, value=b.value)
    city.slip_in(b, headers=[*b.headers, ("colour", b"red")])
    city.slip_in(c, value=None)
    # As if the tombstone had never come.
    city.slip_in(d)
    found = city.compared(owner)

    assert (equal.differences, equal.unjudged, equal.compared) == (NOTHING, {}, {"source": 3})
    assert found.differences == {"missing": 1, "extra": 1, "different": 2, "order": 0}
    assert {(each.kind, each.name, each.detail.split(":")[0]) for each in found.samples} == {
        ("missing", urn("CL_C"), "the source holds it, and no record or a tombstone is the last of its key"),
        ("extra", urn("CL_D"), "neither the source nor state has it"),
        ("different", urn("CL_A"), "the source holds another body"),
        ("different", urn("CL_B"), "its headers are not those of the source's content"),
    }


@pytest.mark.parametrize("flavour", ["fmr"], indirect=True)
def test_data_registrations_are_published_and_compared_like_structures(city: Structures) -> None:
    source = {"kind": "sdmx", "connection": "registry", "registrations": True}
    owner = city.owner(message=BINARY, source=source)
    one, two = registrations.urn("exr-1"), registrations.urn("exr-2")
    city.registry.submit(submission(registration("exr-1"), registration("exr-2")))
    city.ran(owner, mode="full")
    city.registry.store.clock.advance(600)
    city.registry.submit(submission(registration("exr-1", "https://example.org/moved")))
    city.registry.delete([two])
    city.registry.store.clock.advance(600)
    city.ran(owner)
    last = {each.key: each for each in read_committed(city.settings, [city.topic])}

    equal = city.compared(owner)
    city.slip_in(last[one.encode()], value=last[urn("CL_A").encode()].value)
    found = city.compared(owner)

    assert b"https://example.org/moved" in (last[one.encode()].value or b"")
    assert last[two.encode()].value is None
    assert (equal.differences, equal.unjudged, equal.compared) == (NOTHING, {}, {"source": 5})
    assert [(each.kind, each.name) for each in found.samples] == [("different", one)]


@pytest.mark.parametrize("flavour", ["fmr"], indirect=True)
def test_what_the_log_shows_as_changed_meanwhile_is_distinguished(city: Structures) -> None:
    owner = city.owner()
    city.ran(owner, mode="full")

    def happen() -> None:
        city.submit("CL_B", code="F")
        city.ran(owner)

    meanwhile = city.compared(owner, happen)
    city.submit("CL_A", code="F")
    city.registry.delete([urn("CL_D")])
    behind = city.compared(owner)
    city.ran(owner)

    assert (meanwhile.differences, meanwhile.unjudged) == (NOTHING, {BEHIND: 1})
    assert (behind.differences, behind.unjudged) == (NOTHING, {BEHIND: 2})
    assert (city.compared(owner).differences, city.compared(owner).unjudged) == (NOTHING, {})


@pytest.mark.parametrize("flavour", ["fmr"], indirect=True)
def test_what_a_first_run_only_noted_is_not_missed(city: Structures) -> None:
    owner = city.owner()
    city.ran(owner)

    found = city.compared(owner)

    assert (found.differences, found.unjudged) == (NOTHING, {BASELINE: 4})


@pytest.mark.parametrize("flavour", ["fmr"], indirect=True)
def test_a_registry_that_is_not_read_completely_gives_no_verdict(city: Structures) -> None:
    owner = city.owner()
    city.ran(owner, mode="full")
    city.registry.faults.drop(times=None)

    with pytest.raises(RetriableError):
        city.compared(owner)


def test_converted_structures_cannot_be_compared() -> None:
    lossy = registry_publication(
        source={
            "kind": "sdmx",
            "connection": "registry",
            "media_type": "application/vnd.sdmx.structure+json;version=2.0.0",
        },
        message={"allow_lossy": True},
    )

    with pytest.raises(ConfigurationError, match="cannot be verified against its source: it may convert structures"):
        check_answerable(lossy)
