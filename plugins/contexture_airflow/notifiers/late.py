"""Tells people that a run is not published in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.sdk import AsyncCallback, BaseNotifier, DeadlineAlert, DeadlineReference
from asgiref.sync import sync_to_async

from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.monitoring.alerts import Failure
    from contexture.publications import Publication
    from contexture.storage.home import Storage

# A run that failed was told when it failed, and one that has ended meanwhile needs nobody.
_UNDER_WAY: Final = frozenset({"queued", "running"})
_NEXT: Final = (
    "see in the run which task is red, waits or still runs, and in its log why; a slow source, brokers that are away, "
    "a full pool and runs that wait for each other are the usual reasons; of a publication that was suspended it waits "
    "until somebody resumes it"
)


def deadline(publication: Publication) -> DeadlineAlert | None:
    """Airflow's own deadline for the runs of a publication; None where it wants none."""
    minutes = publication.notify.published_within_minutes
    if minutes is None:
        return None
    audience = Audience.of(publication)
    told: dict[str, Any] = {
        "publication": publication.name,
        "minutes": minutes,
        "mail": list(audience.mail),
        "notifiers": [dict(each) for each in audience.notifiers],
    }
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=minutes),
        # In the triggerer: a callback that an executor calls is refused the connections of Airflow's database (3.3.2).
        callback=AsyncCallback(tell_late, told),
        name=f"published within {minutes} minutes",
    )


async def tell_late(context: Context, **told: Any) -> None:
    """What Airflow's triggerer calls for a run that missed its deadline; `told` makes a `LateNotifier`."""
    # Storage and mail server may let themselves be waited for, and the triggerer's loop must not.
    await sync_to_async(LateNotifier(**told).notify, thread_sensitive=False)(context)


class LateNotifier(BaseNotifier):
    """Alerts people that a run of a publication has not concluded in time.

    For Airflow's deadlines, once for each run that misses its own. Silent where the run has failed, for
    that was told, where it has ended meanwhile, and for backfills, which nobody waits for.

    Args:
        publication: name of the publication.
        minutes: how long a run may take, from when it was queued.
        mail: addresses.
        notifiers: mappings with `notifier` and `arguments`.
    """

    def __init__(
        self,
        publication: str,
        minutes: int,
        mail: Sequence[str] = (),
        notifiers: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__()
        self.publication = publication
        self.minutes = minutes
        self.audience = Audience.received(mail, notifiers)

    def notify(self, context: Context) -> None:
        """Tells about the run of this context, which holds it as Airflow's REST interface writes it."""
        from contexture_airflow.steps.open import open_storage

        given: Any = context
        run: Mapping[str, Any] = given["dag_run"]
        if run["state"] not in _UNDER_WAY or run["run_type"] == "backfill":
            self.log.info("Nobody is alerted: the run is %s (%s)", run["state"], run["run_type"])
            return
        storage = open_storage()
        tell(self._failure(run, storage), self.audience, storage, context, self.log)

    def _failure(self, run: Mapping[str, Any], storage: Storage) -> Failure:
        from contexture.monitoring.alerts import AlertKind, Failure, pending_sends

        run_id = str(run["dag_run_id"])
        return Failure(
            publication=self.publication,
            run_id=run_id,
            task="",
            at=datetime.now(UTC),
            happened=f"the run was queued more than {self.minutes} min ago and is still {run['state']}",
            next_step=_NEXT,
            run_url=f"{airflow_address()}/dags/{run['dag_id']}/runs/{quote(run_id)}",
            log_url="",
            pending=pending_sends(storage, self.publication),
            kind=AlertKind.LATE,
        )
