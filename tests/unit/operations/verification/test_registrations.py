"""Data registrations of a registry, compared with what its topics hold."""

from __future__ import annotations

import pytest

from builders import registrations, registry
from builders.structure_runs import registry_publication
from contexture.kafka import TopicRecord
from contexture.operations.verification.registry_view import RegistryView
from contexture.operations.verification.source_view import ExpectedRecord
from contexture.publications import SdmxPublication
from fakes.structure_registry import FakeRegistry

LIST, ONE = registry.urn("CL_A"), registrations.urn("exr-1")


@pytest.fixture
def source() -> FakeRegistry:
    held = FakeRegistry()
    held.hides_registrations = True
    held.submit({LIST: ("a",)})
    held.submit({ONE: ("https://example.org/1",)})
    return held


def view(source: FakeRegistry) -> RegistryView:
    settings = {"kind": "sdmx", "connection": "registry", "registrations": True}
    return RegistryView(SdmxPublication.of(registry_publication(source=settings)), source)


def expected(shown: RegistryView) -> dict[bytes, ExpectedRecord]:
    rows = [row for met in shown.walk() for row in met.rows]
    return {row.key: row for row in rows if isinstance(row, ExpectedRecord) and row.key is not None}


def test_each_registration_is_an_expected_record(source: FakeRegistry) -> None:
    shown = view(source)
    found = expected(shown)
    assert sorted(found) == sorted([LIST.encode(), ONE.encode()])

    same = TopicRecord("structures", 0, 0, ONE.encode(), source.message(ONE), (), None)
    assert shown.difference(found[ONE.encode()], same) is None
    source.submit({ONE: ("https://example.org/moved",)})
    moved = TopicRecord("structures", 0, 1, ONE.encode(), source.message(ONE), (), None)
    assert shown.difference(found[ONE.encode()], moved) == "body"


def test_a_registration_may_be_behind_when_the_log_shows_that_some_changed(source: FakeRegistry) -> None:
    shown = view(source)
    assert shown.is_behind(ONE.encode(), None, "1")
    assert not shown.is_behind(LIST.encode(), None, "1")
    assert not view(source).is_behind(ONE.encode(), None, "2")
