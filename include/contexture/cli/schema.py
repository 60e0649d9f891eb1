"""`contexture schema`: the JSON Schema by which an editor completes and checks publication files."""

from __future__ import annotations

import json

import typer

app = typer.Typer(add_completion=False)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@app.command("schema")
def show_schema() -> None:
    """Print the JSON Schema of publication files.

    Save it beside your publications and begin each file with `# yaml-language-server: $schema=publication.schema.json`:
    the editor then completes keys, shows what they mean, and marks what is wrong while you write.
    """
    typer.echo(editor_schema(), nl=False)


def editor_schema() -> str:
    """The schema as the text of a file: keys, types and values. What excludes each other, only loading knows."""
    from contexture.publications.publication import PUBLICATIONS

    schemas = [model.model_json_schema(mode="validation") for model in PUBLICATIONS.values()]
    schema = {"$schema": _DIALECT, **schemas[0], "title": "Contexture publication"}
    schema["$defs"] = {name: part for each in schemas for name, part in each["$defs"].items()}
    for section in schema["properties"]:
        parts = [each["properties"][section] for each in schemas]
        if any(part != parts[0] for part in parts):
            forms = list(dict.fromkeys(part["$ref"] for part in parts))
            schema["properties"][section] = {
                "description": parts[0]["description"],
                "anyOf": [{"$ref": form} for form in forms],
            }
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
