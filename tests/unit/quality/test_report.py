from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

from contexture.publications import Publication
from contexture.storage.manifests import ExpectationResult, QualityVerdict
from contexture.storage.quarantine import RuleSample as ConsistencyViolation
from spark_jobs.quality.report import ObservedResult, Report, render_page
from spark_jobs.quality.summary import ObservedSample, RunSummary, SharedTopic, StructureSummary, TranscodedStructure

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "</code><script>alert('car')</script>&amp;"
REFUSED = {"attr-shape": 4, "id-missing": 1, "<b>rule</b>": 2}


class Tags(HTMLParser):
    """Names of all elements, and the addresses they point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses |= {value or "" for name, value in attrs if name in {"src", "href", "srcset", "action"}}


def rendered(*, success: bool = True, severity: str = "critical", raised: str | None = None) -> str:
    result = ExpectationResult.model_validate(
        {
            "name": "known-type",
            "severity": severity,
            "success": success,
            "on": "entities",
            "description": "every entity is of type car",
            "observed": "1 of 3 rows break it",
            "raised": raised,
        }
    )
    verdict = QualityVerdict(outbox="000000000007-abc", approved=success or severity != "critical", results=(result,))
    source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles"}
    publication = Publication.model_validate({"name": "vehicles", "description": HOSTILE, "source": source})
    summary = RunSummary(
        read=1234567,
        accepted=1234560,
        quarantined=7,
        in_source=None,
        unchanged=0,
        newest_modified_at=None,
        reference_time=NOON,
        quarantined_by_rule=REFUSED,
        collisions=3,
        collided=(SharedTopic("cars", HOSTILE, '["vehicles","/","car1","car"]', refused=True),),
        broken={"attr-shape": (ConsistencyViolation(identity="/4wheels car1 car", message="speed has no value"),)},
    )
    findings = [ObservedResult(result, (HOSTILE,))]
    return render_page(Report(publication, HOSTILE, summary, verdict, findings, NOON, 2.34)).decode()


def test_the_page_needs_no_network() -> None:
    text = rendered(success=False)
    tags = Tags(text)
    assert tags.addresses == {"data_docs/index.html", "gx_result.json", "verdict.json"}
    assert tags.names & {"script", "link", "img", "iframe", "base", "object"} == set()
    assert re.findall(r"url\(|@import|https?://", text) == []


def test_what_others_wrote_is_text_and_never_markup() -> None:
    tags = Tags(rendered(success=False, raised=HOSTILE))
    assert tags.names & {"script", "b"} == set()
    assert rendered(success=False).count("&lt;script&gt;alert(&#39;car&#39;)&lt;/script&gt;&amp;amp;") == 4


def test_the_first_line_says_what_becomes_of_the_run() -> None:
    assert "Approved: every expectation holds." in rendered()
    assert "Rejected: nothing of this run is sent." in rendered(success=False)
    assert "Approved, with 1 expectation that does not hold." in rendered(success=False, severity="warning")


def test_counts_are_shown_with_bars_the_largest_first() -> None:
    text = rendered()
    assert "<dd>1,234,567</dd>" in text
    assert "<dd>not known</dd>" in text
    assert "<dd>2026-03-01 12:00:00 UTC</dd>" in text
    assert re.findall(r"<rect class=\"error\" width=\"([\d.]+)\"", text) == ["100.0", "50.0", "25.0"]
    assert "No row rule gave a warning." in text


def test_rules_are_shown_with_a_few_that_broke_them() -> None:
    assert "<li><code>/4wheels car1 car</code>: speed has no value</li>" in rendered()


def test_an_expectation_that_raised_is_distinguished_from_one_that_fails() -> None:
    assert "! raised" in rendered(success=False, raised="no such column")
    assert "✗ fails" in rendered(success=False)


def test_topics_of_several_identities_are_shown_with_both() -> None:
    text = rendered()

    assert "3 events have a topic that another identity uses; the first 1 are shown." in text
    assert "&#34;car1&#34;" in text
    assert "<td>quarantined</td>" in text


def test_a_registry_has_structures_and_no_entities() -> None:
    result = ExpectationResult(
        name="unique-urn",
        severity="critical",
        success=True,
        on="structures",
        description="no two rows are the same structure",
        observed="0 of 3 rows break it",
    )
    publication = Publication.model_construct(name="structures", description="")
    summary = StructureSummary(
        read=15000,
        accepted=14998,
        quarantined=1,
        in_source=15000,
        unchanged=0,
        newest_modified_at=None,
        reference_time=NOON,
        quarantined_by_rule={"urn-missing": 1},
        inexpressible=1,
        unrouted=7,
        registry_transaction=12345,
        samples=[ObservedSample("dangling-reference", "urn:a<b>", "'urn:c' is not stored")],
    )
    verdict = QualityVerdict(outbox="000000000007-abc", approved=True, results=(result,))
    text = render_page(
        Report(publication, "manual__1", summary, verdict, [ObservedResult(result)], NOON, 2.34)
    ).decode()
    assert re.search("entit", text, re.IGNORECASE) is None
    assert re.findall(r"<dt>([^<]+)</dt><dd>(?:<code>)?([^<]+)<", text) == [
        ("Run", "manual__1"),
        ("Outbox", "000000000007-abc"),
        ("Reference time", "2026-03-01 12:00:00 UTC"),
        ("Registry's transaction", "12345"),
        ("In the source", "15,000"),
        ("Read", "15,000"),
        ("Accepted", "14,998"),
        ("Unchanged", "0"),
        ("Quarantined", "1"),
        ("Not in this form", "1"),
        ("Without a route", "7"),
    ]
    assert '<th scope="col" class="number">Structures</th>' in text
    assert "Converted" not in text
    assert "<td><code>dangling-reference</code></td><td><code>urn:a&lt;b&gt;</code></td>" in text
    assert "<td>&#39;urn:c&#39; is not stored</td>" in text


def test_what_a_backfill_lacks_is_listed() -> None:
    publication = Publication.model_construct(name="structures", description="")
    known = {"read": 2, "accepted": 2, "quarantined": 0, "in_source": None, "unchanged": 0, "newest_modified_at": None}
    lacking = "transaction 2 of the registry, which the registry's log does not contain"
    verdict = QualityVerdict(outbox="000000000007-abc", approved=True, results=())
    for missing, shown in (((), False), ((lacking, "<b>"), True)):
        summary = StructureSummary(**known, reference_time=NOON, missing=missing)  # type: ignore[arg-type]
        text = render_page(Report(publication, "backfill__1", summary, verdict, [], NOON, 2.34)).decode()
        assert ("Missing and not replaced" in text) == shown
        assert ("<li>transaction 2 of the registry," in text) == shown
        assert ("<li>&lt;b&gt;</li>" in text) == shown


def test_converted_structures_are_shown_with_what_they_lost() -> None:
    publication = Publication.model_construct(name="structures", description="")
    known = {"read": 2, "accepted": 2, "quarantined": 0, "in_source": 2, "unchanged": 0, "newest_modified_at": None}
    summary = StructureSummary(
        **known,  # type: ignore[arg-type]
        reference_time=NOON,
        transcoded=2,
        conversions=(TranscodedStructure("urn:x=A:B(1.0)", "application/xml", "application/json", "name[fr] 6"),),
    )
    verdict = QualityVerdict(outbox="000000000007-abc", approved=True, results=())

    text = render_page(Report(publication, "manual__1", summary, verdict, [], NOON, 2.34)).decode()

    assert "<dt>Converted</dt><dd>2</dd>" in text
    assert "<td><code>urn:x=A:B(1.0)</code></td><td><code>application/xml</code></td><td>name[fr] 6</td>" in text
    assert "The first 1 of 2; transcoded.parquet of the outbox lists all." in text
