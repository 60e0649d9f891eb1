from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contexture.publications import Publication
from spark_jobs.quality.columns import column_names, condition


def vehicles(**quality: object) -> Publication:
    source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles"}
    return Publication.model_validate({"name": "vehicles", "source": source, "quality": quality})


def test_plain_names_stay_as_they_are_and_stand_once() -> None:
    publication = vehicles(
        required_attributes=["speed", "brand"],
        attribute_types={"speed": "Number"},
        ranges={"oilLevel": {"minimum": 0}},
    )
    assert column_names(publication) == {"brand": "brand", "oilLevel": "oilLevel", "speed": "speed"}


def test_a_name_with_other_signs_gets_a_digest_of_the_whole_name() -> None:
    assert column_names(vehicles(required_attributes=["so2-mg/m³"])) == {"so2-mg/m³": "so2_mg_m_70e631fe11"}


def test_names_that_differ_in_case_only_get_columns_of_their_own() -> None:
    names = column_names(vehicles(required_attributes=["speed", "Speed"]))
    assert len({name.casefold() for name in names.values()}) == 2


@given(st.lists(st.text(min_size=1, max_size=12).filter(lambda name: "," not in name), max_size=8))
def test_columns_are_distinct_without_case_and_safe_in_sql(names: list[str]) -> None:
    publication = vehicles(attribute_types=dict.fromkeys(names, "Text"))
    columns = column_names(publication)
    assert set(columns) == set(names)
    assert len({column.casefold() for column in columns.values()}) == len(set(names))
    assert all(column.isascii() and column.replace("_", "a").isalnum() for column in columns.values())


def test_attributes_that_only_the_author_s_own_expectations_name_have_columns_too() -> None:
    publication = vehicles(
        expectations=[
            {"name": "ExpectColumnValuesToBeUnique", "kwargs": {"column": "value_plate"}},
            {"name": "ExpectColumnPairValuesToBeEqual", "kwargs": {"column_A": "type_low", "column_B": "type"}},
            {"name": "ExpectCompoundColumnsToBeUnique", "kwargs": {"column_list": ["id", "value_seat"]}},
            {
                "name": "ExpectTableRowCountToEqual",
                "kwargs": {"value": 1},
                "where": "value_speed > 0 and `type_oil-level` = 'Number'",
            },
        ]
    )
    assert list(column_names(publication)) == ["low", "oil-level", "plate", "seat", "speed"]


def test_a_condition_is_written_with_the_frame_s_columns() -> None:
    safe = {"speed": "speed", "oil-level": "oil_level_0a1b2c3d4e"}
    assert condition("type = 'car' and value_speed > 0 and `type_oil-level` = 'Number'", safe) == (
        "type = 'car' and value_speed > 0 and `type_oil_level_0a1b2c3d4e` = 'Number'"
    )


def test_other_frames_have_no_columns_named_after_data() -> None:
    expectation = {"name": "ExpectColumnValuesToNotBeNull", "on": "attributes", "kwargs": {"column": "number"}}
    assert column_names(vehicles(expectations=[expectation | {"where": "attribute = 'value_speed'"}])) == {}
