"""Great Expectations' own documents: made safe to open, and put beside the report."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.storage.home import Storage
from spark_jobs.quality.self_contained import head, self_contained

# What comes from data; the rest of a stored result is written by the publication's author and by us.
_FROM_DATA = ("result", "exception_info")


def escape_results(validations: Path) -> None:
    """Escapes the data in stored results, for Data Docs put it into their pages as it is (measured with 1.24.1).

    An entity whose type is `<script>` would otherwise run in the browser of whoever looks at why it was refused.
    """
    for file in validations.rglob("*.json"):
        document = json.loads(file.read_bytes())
        for result in document.get("results", []):
            result.update({key: _escaped(result[key]) for key in _FROM_DATA if key in result})
        file.write_text(json.dumps(document))


def copy(site: Path, validations: Path, storage: Storage, target: str) -> None:
    """Puts the pages of a finished site into a folder of the storage, each one file that needs nothing else.

    Args:
        site: the Data Docs, as Great Expectations wrote them.
        validations: the stored results that they show.
        storage: where the pages go.
        target: the folder there.
    """
    for page in site.rglob("*.html"):
        # The index is filled by a script, from several other hosts: ours tells the same.
        if page.parent != site:
            written = self_contained(page.read_text(encoding="utf-8"))
            storage.write(f"{target}/{page.relative_to(site).as_posix()}", written.encode())
    storage.write(f"{target}/index.html", _index(site, validations))


@dataclass(frozen=True, slots=True)
class _Validation:
    """A line of the index: how many of the expectations held, and the pages of both, where they are."""

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
    return template.render(head=head("Data Docs"), validations=lines).encode()


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
