"""How `contexture outbox` shows outboxes: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from pydantic import computed_field
from rich.console import Console
from rich.text import Text

from contexture.cli.registry_lines import registry_lines
from contexture.cli.text_table import text_table
from contexture.operations.actions.outboxes import OutboxStory
from contexture.storage.delivery import SendAttempts, most_urgent
from contexture.storage.manifests import Document

TOPICS_SHOWN = 20
_ID_SHOWN = 12
_HEAD = ("outbox", "publication", "number", "mode", "status", "since (UTC)", "records", "failed sends", "sending")
_STYLES = {"prepared": "yellow", "approved": "yellow", "concluded": "green", "rejected": "red", "abandoned": "red"}


class OutboxLine(Document):
    """One outbox in a list."""

    publication: str
    outbox: str
    sequence: int
    mode: str
    status: str
    since: datetime
    records: int
    reason: str
    sends: tuple[SendAttempts, ...]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of property
    @property
    def attempts(self) -> int:
        """All failed sends."""
        return sum(each.failed for each in self.sends)


def print_list(lines: list[OutboxLine], *, as_json: bool, everything: bool) -> None:
    """The outboxes as a table, or as one JSON document."""
    if as_json:
        print(json.dumps({"outboxes": [line.model_dump(mode="json") for line in lines]}, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    if lines:
        styles = [_STYLES[line.status] for line in lines]
        console.print(text_table(_HEAD, [_cells(line) for line in lines], styles), end="")
        console.print("more of one: contexture outbox show ID (its first four characters or more)", style="dim")
    else:
        console.print("there is no outbox" if everything else "no outbox is pending; --all lists those at their end")


def _cells(line: OutboxLine) -> tuple[str, ...]:
    since = f"{line.since:%Y-%m-%d %H:%M:%S}"
    shown = most_urgent(line.sends)
    counts = (str(line.records), str(line.attempts), shown.told() if shown else "")
    return (line.outbox[:_ID_SHOWN], line.publication, str(line.sequence), line.mode, line.status, since, *counts)


def print_story(story: OutboxStory, *, as_json: bool) -> None:
    """All about one outbox."""
    if as_json:
        print(json.dumps(story.model_dump(mode="json"), ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"outbox {story.outbox}", style="bold"))
    for line in _lines(story):
        console.print(Text(line))
    console.print(Text(f"next: {story.next_step}", style="bold"))


def _lines(story: OutboxStory) -> Iterator[str]:
    manifest = story.manifest
    yield f"publication {story.publication}, {manifest.mode} run {story.sequence}, {story.status}"
    if story.sends:
        yield f"{sum(each.failed for each in story.sends)} failed sends"
    yield from (f"  shard {each.shard}: {each.told()}: {each.message}" for each in story.sends)
    yield from (f"  {step['at']}  {step['status']}: {step['reason']}" for step in story.steps)
    yield (
        f"{manifest.read} read, {manifest.accepted} accepted, {manifest.unchanged} unchanged, "
        f"{manifest.quarantined_entities} quarantined"
    )
    yield (
        f"{manifest.records} records ({manifest.upserts} upserts, {manifest.deletes} deletes) in "
        f"{manifest.transactions} transactions, {len(manifest.shards)} shards"
    )
    yield from registry_lines(manifest)
    if manifest.retried is not None:
        yield (
            f"tries again what outbox {manifest.retried} held back; {manifest.skipped_newer} left out, for the target "
            "holds newer ones"
        )
    if manifest.replayed_from is not None:
        where = f", to topics that begin with {manifest.topic_prefix}" if manifest.topic_prefix else ""
        yield (
            f"sent again from the {manifest.replayed_from}{where}; {manifest.skipped_newer} left out, for the target "
            "holds newer ones"
        )
    yield from (f"missing, and not made up: {each}" for each in manifest.missing)
    if manifest.collisions:
        yield f"{manifest.collisions} events have the topic of another identity: the report shows which"
    if manifest.transcoded:
        yield f"{manifest.transcoded} structures were converted: the report shows what was lost"
    yield from _topic_lines(story)
    for rule in story.refused:
        yield f"quarantine, {rule.rule} ({rule.severity}): {rule.rows}, such as {'; '.join(rule.samples)}"
    for failed in story.failed:
        yield f"expectation failed, {failed.severity}: {failed.description} (found {failed.observed})"
    yield f"report {story.report or 'none'}"


def _topic_lines(story: OutboxStory) -> Iterator[str]:
    if story.topics:
        yield f"{len(story.topics)} topics"
    for topic, records in list(story.topics.items())[:TOPICS_SHOWN]:
        yield f"  {records:>8}  {topic}"
    if len(story.topics) > TOPICS_SHOWN:
        yield f"  and {len(story.topics) - TOPICS_SHOWN} more; --json has all"
