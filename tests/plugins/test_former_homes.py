"""What an earlier version left pending is sent by the steps of today, before and after an upgrade of its home."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from builders.fake_target import FakeTarget
from builders.homes import FORMER, VEHICLES, former_home
from builders.pages import PROJECT
from contexture.outbox.formats import stored
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.upgrading import upgrade
from contexture_airflow.steps.run import RunRequest
from contexture_airflow.steps.settling import settle

TOPICS = {f"vehiclesxffffx002f4wheelsxffffcar{number}xffffcar" for number in range(3)}
"""Those that the runs of before have sent to."""

CAR = b'["vehicles","/4wheels","%s","car"]'


@pytest.mark.parametrize("name", FORMER)
@pytest.mark.parametrize("is_upgraded", [False, True])
def test_what_was_pending_is_sent_and_the_next_run_goes_on_from_there(
    tmp_path: Path, name: str, is_upgraded: bool
) -> None:
    storage, kafka = former_home(name, tmp_path), FakeTarget(topics=set(TOPICS))
    if is_upgraded:
        upgrade(storage, "vehicles", tuple(stored(storage, "vehicles")))
    (pending,) = Outboxes(storage, "vehicles").pending()
    plan = settle(storage, VEHICLES, RunRequest(run_id="next"), kafka, lambda sentence: None)
    sent = sorted((key, value is None) for _, key, value in kafka.sent)
    assert sent == [(CAR % b"car0", False), (CAR % b"car2", True)]
    assert (plan.settled, plan.mode, plan.sequence) == ((pending.outbox,), "changes", 4)


@pytest.mark.parametrize("name", FORMER)
def test_what_the_page_has_copied_of_a_large_home_is_enough_to_send_what_was_pending(tmp_path: Path, name: str) -> None:
    storage, kafka = former_home(name, tmp_path), FakeTarget(topics=set(TOPICS))
    page = (PROJECT / "docs" / "how-to" / "upgrade.md").read_text(encoding="utf-8")
    sentence = re.search(r"Of a large home (.+?) of each publication are enough", page, re.DOTALL)
    assert sentence is not None
    copied = {each.rstrip("/") for each in re.findall(r"`([^`]+)`", sentence[1])}
    for path in (Path(storage.root) / "vehicles").iterdir():
        if path.name not in copied:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (pending,) = Outboxes(storage, "vehicles").pending()
    plan = settle(storage, VEHICLES, RunRequest(run_id="next"), kafka, lambda sentence: None)
    assert (plan.settled, plan.mode, plan.sequence) == ((pending.outbox,), "changes", 4)
