"""Pages of Data Docs need nothing but themselves, whatever Great Expectations wrote into them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from spark_jobs.quality.data_docs import copy_data_docs, make_self_contained

PAGE = """<!DOCTYPE html>
<html>
  <head>
    <title>Data Docs</title><title></title>
    <link rel="stylesheet" href="https://cdn.example/bootstrap.min.css">
    <style>.navbar-brand a { background: url('https://assets.example/logo.png'); }</style>
    <script src="https://cdn.example/vega@5"></script>
  </head>
  <body onload="track()">
    <a href="../index.html"><img src="https://assets.example/logo.png?dataContextId=7"></a>
    <p style="color: red">8 &lt; 9 &amp; caf&#233;</p>
    <a href="#section-2" class="nav-link">id</a>
    <a href="https://docs.example/help">help</a>
    <button onclick="clearFilters()">Clear</button>
    <script>if (1 < 2) { document.write("<p>late</p>"); }</script>
    <footer><p>Newsletter <a href="https://example.com">here</a></p></footer>
    <p style="background: url(//assets.example/x.png)">end<br></p>
  </body>
</html>"""


class Seen(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def rewritten() -> str:
    return make_self_contained(PAGE)


def test_nothing_is_loaded_and_nothing_runs(rewritten):
    names = {name for name, _ in Seen(rewritten).elements}
    assert names & {"script", "link", "img", "iframe", "form", "button", "footer"} == set()
    assert re.findall(r"https?:|//[a-z]|url\(|onload|onclick", rewritten) == []
    assert "late" not in rewritten
    assert "Newsletter" not in rewritten


def test_text_and_links_within_the_site_stay_as_they_are(rewritten):
    assert '<p style="color: red">8 &lt; 9 &amp; caf&#233;</p>' in rewritten
    assert '<a href="#section-2" class="nav-link">id</a>' in rewritten
    assert '<a href="../index.html"></a>' in rewritten
    assert "<a>help</a>" in rewritten
    assert "<p>end<br></p>" in rewritten


def test_each_page_has_its_style_and_forbids_everything_else(rewritten):
    assert rewritten.startswith("<!doctype html>")
    assert rewritten.count("<style>") == 1
    assert "light-dark(" in rewritten
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in rewritten
    assert rewritten.count("<title>") == 1


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "java\tscript:alert(1)",
        "//cdn.example/x",
        "\\\\cdn.example/x",
        "/\\cdn.example",
        "HTTPS://cdn.example",
        "data:text/html,x",
        "vbscript:x",
    ],
)
def test_an_address_that_leads_elsewhere_or_runs_is_left_out(address):
    assert "href" not in make_self_contained(f'<body><a href="{address}">x</a>').split("</style>")[-1]


_ANY = st.text(alphabet=st.characters(codec="utf-8"), max_size=60)


@given(
    st.lists(
        st.one_of(
            _ANY,
            st.sampled_from(
                [
                    "<script>",
                    "</script>",
                    "<img src=//x onerror=y>",
                    "<a href='",
                    '"',
                    ">",
                    "<!--",
                    "<svg onload=1>",
                    "&lt;",
                    "<style>",
                    "<title>",
                ]
            ),
        )
    )
)
def test_no_markup_makes_it_load_or_run_anything(pieces):
    text = make_self_contained("<html><head></head><body>" + "".join(pieces))
    for name, attributes in Seen(text).elements:
        assert name not in {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
        assert not [key for key in attributes if key.startswith("on") or key in {"src", "srcset", "action"}]
        assert not re.match(r"\s*[\w+.-]+:|\s*//", attributes.get("href") or "")


def test_the_index_leads_to_what_was_judged_and_says_how_it_ended(tmp_path: Path) -> None:
    site, validations = tmp_path / "site", tmp_path / "validations"
    for name, success in (("entities", False), ("<b>own</b>", True)):
        stored = validations / name / "__none__" / "20260301T120000.0Z"
        shown = site / "validations" / stored.relative_to(validations)
        for folder in (stored, shown):
            folder.mkdir(parents=True)
        results = [{"success": True}, {"success": success}]
        (stored / "all.json").write_text(json.dumps({"success": success, "suite_name": name, "results": results}))
        (shown / "all.html").write_text(PAGE)
    (site / "expectations").mkdir()
    (site / "expectations" / "entities.html").write_text(PAGE)
    (site / "index.html").write_text(PAGE)
    (site / "static").mkdir()
    (site / "static" / "logo.png").write_bytes(b"png")
    docs = StoredFolder(FileTree(str(tmp_path / "home")), "data_docs")
    copy_data_docs(site, validations, docs)
    index = docs.read("index.html").decode()
    assert 'href="validations/entities/__none__/20260301T120000.0Z/all.html">entities</a></td><td>1 of 2</td>' in index
    assert 'href="expectations/entities.html"' in index
    assert "&lt;b&gt;own&lt;/b&gt;" in index
    assert "<b>own" not in index
    assert not docs.exists("static")
    assert b"cdn.example" not in docs.read("expectations/entities.html")
