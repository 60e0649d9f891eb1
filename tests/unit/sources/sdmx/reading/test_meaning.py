"""Which structures are selected, by any of their URNs."""

from __future__ import annotations

from builders.registry import urn
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.reading.steps import SelectedStructures, by_name

OF_2_1 = "urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=ECB:CR_EXR(1.0)"
OF_3_0 = "urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=ECB:CR_EXR(1.0)"


def test_a_structure_has_one_name_in_all_formats() -> None:
    assert by_name([OF_2_1, OF_3_0]) == {OF_3_0: OF_2_1}


def test_without_selectors_everything_is_selected() -> None:
    assert SelectedStructures((), [urn("A"), urn("B")]).among([urn("B"), urn("A")]) == (urn("B"), urn("A"))


def test_a_selector_may_use_the_class_of_either_format() -> None:
    meaning = SelectedStructures([Selector.parse("ContentConstraint=ECB:*(*)")], [OF_3_0, OF_2_1, urn("A")])

    assert meaning.among([OF_3_0, urn("A")]) == (OF_3_0,)
    assert meaning.urn(OF_3_0) == OF_3_0


def test_the_latest_is_the_latest_of_what_is_held() -> None:
    meaning = SelectedStructures([Selector.parse("*=*:*(~)")], [urn("A", "1.0"), urn("A", "2.0"), urn("B", "1.0")])

    assert meaning.among([urn("A", "1.0"), urn("A", "2.0"), urn("B", "1.0")]) == (urn("A", "2.0"), urn("B", "1.0"))
    assert meaning.among([urn("A", "1.0"), urn("B", "1.0")]) == (urn("A", "1.0"), urn("B", "1.0"))


def test_all_versions_stand_beside_each_other() -> None:
    meaning = SelectedStructures((), [urn("A", "1.0"), urn("B", "1.0"), urn("A", "2.0"), urn("A", "2.0", "Y")])

    assert meaning.versions_beside([urn("A", "2.0"), urn("A", "1.0")]) == (urn("A", "1.0"), urn("A", "2.0"))
