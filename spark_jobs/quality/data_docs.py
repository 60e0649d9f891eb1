"""The Data Docs of Great Expectations, made safe to open and written beside the report.

Great Expectations writes pages that load a dozen styles, scripts and fonts from other hosts, and a picture whose
address identifies the reader to its makers. Without a network the pages have no layout at all. All of that is removed
here, and a small style of ours is in each page instead. What needs a script (filters, plots by vega) is lost.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.storage.folder import StoredFolder
from contexture.storage.publication_store import REPORT_PAGE

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_DROPPED: Final = frozenset({"script", "style", "iframe", "object", "form", "footer", "noscript", "template", "button"})
_DROPPED_VOID: Final = frozenset({"link", "img", "base", "embed", "meta", "input"})
_VOID: Final = frozenset({"area", "br", "col", "hr", "source", "track", "wbr"})
# The attributes that can contain an address; those of `a` are checked.
_ADDRESSES: Final = frozenset({"src", "srcset", "action", "formaction", "background", "poster", "data", "xlink:href"})
_LOCAL: Final = re.compile(r"(?:#|\.{0,2}/?[\w.-]+)[\w./# =%+:-]*", re.ASCII)
_SCHEME: Final = re.compile(r"[\w+.-]*:|//", re.ASCII)


def make_self_contained(page: str) -> str:
    """Returns the page without anything that it would load."""
    rewriter = _Rewriter()
    rewriter.feed(page)
    rewriter.close()
    return "".join(rewriter.parts)


def render_head(title: str) -> str:
    """Returns the content of the head of each page."""
    return (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title><style>\n{_style()}</style>"
    )


@cache
def _style() -> str:
    return files("spark_jobs.quality").joinpath("templates/data_docs.css").read_text(encoding="utf-8")


class _Rewriter(HTMLParser):
    """Copies a document piece by piece, without the elements that it must not contain."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = ["<!doctype html>\n"]
        self._dropped: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped.append(tag)
        elif tag == "title":
            self._in_title = True
        elif not self._dropped and tag not in _DROPPED_VOID:
            self.parts.append(f"<{tag}{''.join(_attribute(tag, *each) for each in attrs)}>")
            if tag == "head":
                self.parts.append(render_head("Data Docs"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            if tag in self._dropped:
                del self._dropped[self._dropped.index(tag) :]
        elif tag == "title":
            self._in_title = False
        elif not self._dropped and tag not in _DROPPED_VOID | _VOID:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        # Only text arrives here and stays text, because a single `<` is no tag.
        self._text(data.replace("<", "&lt;"))

    def handle_entityref(self, name: str) -> None:
        self._text(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._text(f"&#{name};")

    def _text(self, text: str) -> None:
        if not self._dropped and not self._in_title:
            self.parts.append(text)


def _attribute(tag: str, name: str, value: str | None) -> str:
    if name.startswith("on") or name in _ADDRESSES or (name == "style" and "url(" in (value or "").casefold()):
        return ""
    if name == "href" and not (tag == "a" and _is_local(value or "")):
        return ""
    return f" {name}" if value is None else f' {name}="{escape(value)}"'


def _is_local(address: str) -> bool:
    return _SCHEME.match(address) is None and _LOCAL.fullmatch(address) is not None


# The members that come from data; the rest of a stored result is written by the publication's author and by us.
_FROM_DATA = ("result", "exception_info")


def escape_results(validations: Path) -> None:
    """Escapes the data in stored results, because Data Docs write it into pages unchanged (measured with 1.24.1).

    An entity whose type is `<script>` would otherwise run in the browser of a person who reads why it was refused.
    """
    for file in validations.rglob("*.json"):
        document = json.loads(file.read_bytes())
        for result in document.get("results", []):
            result.update({key: _escaped(result[key]) for key in _FROM_DATA if key in result})
        file.write_text(json.dumps(document))


def copy_data_docs(site: Path, validations: Path, target: StoredFolder) -> None:
    """Copies the pages of a finished site to a folder of the storage; each page is one file that needs nothing else.

    Args:
        site: the Data Docs, as Great Expectations wrote them.
        validations: the stored results that they show.
        target: the folder that receives the pages.
    """
    for page in site.rglob("*.html"):
        # The original index is filled by scripts from several other hosts; ours shows the same.
        if page.parent != site:
            written = make_self_contained(page.read_text(encoding="utf-8"))
            target.write(page.relative_to(site).as_posix(), written.encode())
    target.write(REPORT_PAGE, _index(site, validations))


@dataclass(frozen=True, slots=True)
class _Validation:
    """A line of the index: how many expectations are met, and the pages of results and suite if they exist."""

    name: str
    success: bool
    held: int
    judged: int
    page: str | None
    suite: str
    suite_page: str | None


def _index(site: Path, validations: Path) -> bytes:
    lines = [_validation(site, validations, file) for file in sorted(validations.rglob("*.json"))]
    environment = Environment(loader=PackageLoader("spark_jobs.quality"), autoescape=True, undefined=StrictUndefined)
    template = environment.get_template("data_docs_index.html.j2")
    return template.render(head=render_head("Data Docs"), validations=lines).encode()


def _validation(site: Path, validations: Path, file: Path) -> _Validation:
    document = json.loads(file.read_bytes())
    results = document.get("results", [])
    suite = str(document.get("suite_name") or file.relative_to(validations).parts[0])
    page = f"validations/{file.relative_to(validations).with_suffix('.html').as_posix()}"
    suite_page = f"expectations/{suite}.html"
    return _Validation(
        name=file.relative_to(validations).parts[0],
        success=bool(document.get("success")),
        held=sum(bool(result.get("success")) for result in results),
        judged=len(results),
        page=page if (site / page).is_file() else None,
        suite=suite,
        suite_page=suite_page if (site / suite_page).is_file() else None,
    )


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return {key: _escaped(each) for key, each in value.items()} if isinstance(value, dict) else value
