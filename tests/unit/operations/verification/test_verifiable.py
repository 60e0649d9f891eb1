"""Publications whose records cannot be compared with anything say so, and why."""

from __future__ import annotations

import pytest

from builders.outboxes import publication
from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.operations.recovery.state import check_rebuildable
from contexture.operations.verification.source_view import check_answerable, is_answerable
from contexture.operations.verification.verify import check_verifiable
from contexture.publications import Publication

BUNDLES = structures(topics={"topics": ["structures"], "keep": "history"}, message={"bundle": "transaction"})
ENCODED = publication(message={"encoder": "avro"})


@pytest.mark.parametrize(
    ("owner", "why"), [(BUNDLES, r"message\.bundle: transaction"), (ENCODED, r"the encoder avro made")]
)
def test_what_cannot_be_verified_is_refused_with_the_reason(owner: Publication, why: str) -> None:
    for check in (check_verifiable, check_answerable, check_rebuildable):
        with pytest.raises(ConfigurationError, match=why):
            check(owner)
    assert not is_answerable(owner)


def test_a_single_structure_and_a_value_of_our_own_can_be_verified() -> None:
    for owner in (structures(), publication()):
        check_verifiable(owner)
        assert is_answerable(owner)
