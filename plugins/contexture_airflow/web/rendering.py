"""Renders the page as HTML. Every text is escaped: names and messages are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.monitoring import TransactionStatus, VerificationRow
from contexture.operations.status.charts import HEIGHT, WIDTH
from contexture.operations.status.health import OpenQuestion, PublicationHealth
from contexture.operations.status.overview import HEIGHT as HEIGHT_OF_BARS
from contexture_airflow.settings import publication_dag_id
from contexture_airflow.web.asgi import PREFIX

STATUSES: Final = {
    TransactionStatus.PENDING: "pending",
    TransactionStatus.SENT: "sent",
    TransactionStatus.LOCAL_FAILURE: "failed before it left",
    TransactionStatus.BROKER_ERROR: "refused by the brokers",
    TransactionStatus.UNEXPECTED: "failed otherwise",
}
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class Places:
    """Addresses, as the browser knows them.

    Args:
        root: of the page, `/contexture` behind the path that Airflow itself has.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._airflow = root.removesuffix(PREFIX)

    def publication(self, name: str, part: str = "", **query: Any) -> str:
        """A page of a publication."""
        path = f"{self.root}/publications/{quote(name, safe='')}" + (f"/{part}" if part else "")
        given = {key: value for key, value in query.items() if value is not None}
        return f"{path}?{urlencode(given)}" if given else path

    def new(self, part: str = "", query: str = "") -> str:
        """The page of a new publication, or a part of it; `query`: what was chosen, as an address has it."""
        path = f"{self.root}/new" + (f"/{part}" if part else "")
        return f"{path}?{query}" if query else path

    def unreachable(self) -> str:
        """The connections that do not respond."""
        return f"{self.root}/connections/unreachable"

    def connections(self, name: str) -> str:
        """The properties of a publication's connections."""
        return self.publication(name, "connections")

    def trends(self, names: Iterable[str]) -> str:
        """The charts of publications in the overview."""
        return f"{self.root}/trends?{urlencode([('name', name) for name in names])}"

    def action(self, name: str, action: str, outbox: str | None = None) -> str:
        """The page that asks whether something is to be done."""
        return self.publication(name, f"actions/{action}", outbox=outbox)

    def connection(self, name: str, connection: str) -> str:
        """The page that tests a connection."""
        return self.publication(name, f"connections/{quote(connection, safe='')}")

    def report(self, name: str, outbox: str, file: str = "index.html") -> str:
        """A file of an outbox's data quality report."""
        return self.publication(name, f"reports/{quote(outbox, safe='')}/{file}")

    def refused(self, name: str, outbox: str, ordinal: int) -> str:
        """A quarantined event with its content."""
        return self.publication(name, f"quarantine/{quote(outbox, safe='')}/{ordinal}")

    def export(self, name: str, form: str, run: str | None = None, *, download: bool = True) -> str:
        """The data quality of a publication's last runs as a file, or of one run, by its outbox; `form`: html, json."""
        return self.publication(name, f"report.{form}", run=run, download=None if download else "false")

    def verification(self, row: VerificationRow) -> str:
        """The report of a verification."""
        return self.verification_file(row.publication, row.report)

    def verification_file(self, name: str, path: str) -> str:
        """The report of a verification, by its path on storage."""
        folder, _, file = path.rpartition("/")
        return self.publication(name, f"verifications/{quote(folder.rpartition('/')[2], safe='')}/{file}")

    def dag(self, name: str, run_id: str | None = None) -> str:
        """The DAG of a publication in Airflow, or a run of it."""
        page = f"{self._airflow}/dags/{quote(publication_dag_id(name), safe='')}"
        return f"{page}/runs/{quote(run_id, safe='')}" if run_id else page

    def log(self, name: str, run_id: str, task: str, map_index: int | None = None) -> str:
        """The log of a task in Airflow; of one of several shards, by its index."""
        shard = "" if map_index is None else f"/mapped/{map_index}"
        return f"{self.dag(name, run_id)}/tasks/{quote(task, safe='')}{shard}"

    def question(self, name: str, question: OpenQuestion) -> str:
        """The page of Airflow where a run's question is answered."""
        return f"{self.log(name, question.run_id, question.task)}/required_actions"

    def login(self) -> str:
        """Airflow's login, which leads back to the page in its navigation."""
        return f"{self._airflow}/api/v2/auth/login?{urlencode({'next': f'{self._airflow}/plugin/contexture'})}"


def render(template: str, places: Places, **values: Any) -> str:
    """A page as HTML."""
    return _environment().get_template(f"{template}.html.j2").render(places=places, **values)


def stream(template: str, places: Places, **values: Any) -> Iterator[str]:
    """The same, piece by piece: what is iterated over in the template may take its time."""
    return _environment().get_template(f"{template}.html.j2").generate(places=places, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("contexture_airflow.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "moment": _moment,
        "minute": _minute,
        "day": _day,
        "size": _size,
        "seconds": _seconds,
        "duration": _duration,
        "short": _short,
    }
    environment.globals |= {
        "statuses": STATUSES,
        "healths": list(PublicationHealth),
        "chart_width": WIDTH,
        "chart_height": HEIGHT,
        "bars_height": HEIGHT_OF_BARS,
    }
    return environment


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _minute(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def _day(value: datetime) -> str:
    at = value.astimezone(UTC)
    return f"{at.day} {at:%b %H:%M}"


def _size(value: int | None) -> str:
    if value is None:
        return "not known"
    amount, unit = float(value), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _duration(value: float | None) -> str:
    """Returns a time span in the two largest units that matter: `45 s`, `12 min`, `3 h 5 min`, `2 d 4 h`."""
    if value is None:
        return "-"
    seconds = round(value)
    for size, unit, smaller, name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{seconds // 60} min" if seconds >= 60 else f"{seconds} s"


def _short(value: int) -> str:
    """Returns a round number of a scale: `500`, `2k`, `1.5M`."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return str(value)
