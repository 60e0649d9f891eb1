"""`contexture contract`: what readers of a publication's topics may rely on, in public forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(add_completion=False)


@app.command("contract")
def show_contract(
    publication: Annotated[str, typer.Argument(help="Name of the publication.")],
    *,
    form: Annotated[
        Literal["json-schema", "asyncapi", "odcs"],
        typer.Option(help="json-schema: key and values; asyncapi: topics and messages; odcs: a data contract."),
    ] = "asyncapi",
    records: Annotated[int, typer.Option(min=1, help="Look at so many of the latest records.")] = 10_000,
    files: Annotated[Path | None, typer.Option(help="Folder of publications; else CONTEXTURE_PUBLICATIONS.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of YAML.")] = False,
) -> None:
    """Describe the records of a publication for their readers: keys, values, headers, topics.

    The shapes are those of the latest records that were sent, as the stored outboxes hold them: members that all of
    them have are required, members that were null say so. Names and types are printed, values are not. JSON Schema is
    always JSON.

    Exit codes: 0 done; 2 there is no such publication, or nothing that it has sent is stored; 3 the storage did not
    answer.
    """
    from contexture.operations import environment
    from contexture.operations.actions.contract import check_describable, observe_contract
    from contexture.operations.reports.contract_documents import FORMS

    chosen = environment.named_publication(publication, files)
    check_describable(chosen)
    store = environment.open_home().publication(chosen.name)
    document = FORMS[form](observe_contract(store, records=records), chosen)
    text = _written(document, as_json=as_json or form == "json-schema")
    if output is None:
        typer.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    typer.echo(f"{form} of {chosen.name} is in {output}")


def _written(document: dict[str, object], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=120)
