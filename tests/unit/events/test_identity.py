"""Identities, their keys and their hashes."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events import AttributeName, ContextIdentity, StructureIdentity, identity_hash, identity_key

CAR = ContextIdentity("vehicles", "/4wheels", "car1", "car")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
IDENTITIES = st.builds(ContextIdentity, TEXTS, TEXTS, TEXTS, TEXTS)
ATTRIBUTES = st.none() | st.builds(AttributeName, TEXTS, st.none() | TEXTS)


@pytest.mark.parametrize(
    ("attribute", "key"),
    [
        (None, b'["vehicles","/4wheels","car1","car"]'),
        (AttributeName("speed"), b'["vehicles","/4wheels","car1","car","speed"]'),
        (AttributeName("speed", "urn:d:1"), b'["vehicles","/4wheels","car1","car","speed","urn:d:1"]'),
    ],
)
def test_the_key_of_a_context_identity_is_a_compact_array(attribute: AttributeName | None, key: bytes):
    assert identity_key(CAR, attribute) == key


def test_the_key_of_a_structure_is_its_urn():
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)"

    assert identity_key(StructureIdentity(urn)) == urn.encode()


def test_hostile_text_is_escaped():
    assert identity_key(ContextIdentity("s", "/", 'a","b\n', "ü")) == '["s","/","a\\",\\"b\\n","ü"]'.encode()


@given(IDENTITIES, ATTRIBUTES, IDENTITIES, ATTRIBUTES)
def test_other_identities_have_other_keys(one, its_attribute, other, others_attribute):
    same = (one, its_attribute) == (other, others_attribute)

    assert (identity_key(one, its_attribute) == identity_key(other, others_attribute)) is same


@given(IDENTITIES, ATTRIBUTES)
def test_a_key_can_be_read_back(identity: ContextIdentity, attribute: AttributeName | None):
    members = [identity.service, identity.service_path, identity.id, identity.type]
    if attribute is not None:
        members += [attribute.name] if attribute.dataset_id is None else [attribute.name, attribute.dataset_id]

    assert orjson.loads(identity_key(identity, attribute)) == members


def test_the_hash_of_a_key_never_changes_between_releases():
    assert identity_hash(identity_key(CAR)).hex() == "04cec36e53d2ddbf7049b2823e5525c8"
    assert len(identity_hash(b"")) == 16
