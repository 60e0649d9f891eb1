"""Who reads the page, and what they may see: Airflow's own users and roles decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import uuid4

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Depends, HTTPException, Query, Request

from contexture.monitoring.rows import InterventionRow, RunRow
from contexture.operations.status import detail
from contexture.operations.status.health import PublicationHealth
from contexture.operations.status.overview import Overview, overview
from contexture.operations.status.sources import Sources
from contexture_airflow.web.asgi import PREFIX
from contexture_airflow.web.forms import ForbiddenError
from contexture_airflow.web.installation import Installation
from contexture_airflow.web.rendering import Places

Number = Annotated[int, Query(ge=1, le=10**9)]
"""The number of a page, as an address gives it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What one user may see of an installation."""

    installation: Installation
    sources: Sources
    places: Places
    user: Any

    @property
    def who(self) -> str:
        """What Airflow calls the reader."""
        return self.installation.airflow.name(self.user)

    def may_act(self, name: str) -> bool:
        """Whether this reader may change anything about a publication."""
        return self.installation.airflow.may_act(self.user, self.publication(name))

    def actor(self, name: str) -> None:
        """Lets only those pass who may.

        Raises:
            ForbiddenError: this reader may only read.
            HTTPException: 404 as `publication` has it.
        """
        if not self.may_act(name):
            raise ForbiddenError("you may look at this publication, and not change anything: Airflow's roles decide")

    def may_test(self, connection: str) -> bool:
        """Whether this reader may test a connection."""
        return self.installation.airflow.may_test(self.user, connection)

    def tester(self, connection: str) -> None:
        """Lets only those pass who may test a connection.

        Raises:
            ForbiddenError: this reader may not.
        """
        if not self.may_test(connection):
            raise ForbiddenError("you may not test connections: Airflow's roles decide")

    def note(self, name: str, action: str, subject: str, reason: str, outcome: str, run_id: str | None) -> None:
        """Keeps what this reader did, in the operational tables where there are any."""
        at = self.sources.now
        row = InterventionRow(uuid4().hex, name, at, self.who, action, subject, reason, outcome, run_id)
        self.installation.note(row)

    def publication(self, name: str) -> str:
        """The name of a publication that there is for this reader.

        Raises:
            HTTPException: 404 when there is none, or the reader may not see it: the message does not say which.
        """
        if name not in self.sources.dags:
            raise HTTPException(404, "there is no such publication, or it is not yours to see")
        return name

    def overview(self, page: int, health: PublicationHealth | None, suspended: bool) -> Overview:
        """The publications of this reader."""
        # Whose a file is that can't be read is not known: its name is for those who see everything else.
        files = self.installation.files()
        sees_all = set(files.publications) <= set(self.sources.dags)
        bad_files = files.bad if sees_all else ()
        return overview(self.sources, page=page, health=health, suspended=suspended, bad_files=bad_files)

    def steps(self, name: str, run: RunRow | None) -> tuple[detail.StepTime, ...]:
        """The steps of a run, where Airflow still knows them."""
        return self.installation.airflow.steps(name, [run.run_id]).get(run.run_id, ()) if run else ()

    def runs(self, name: str, page: int) -> detail.Runs:
        """Runs with the times of their steps."""
        rows, paging = detail.run_rows(self.sources, self.publication(name), page=page)
        steps = self.installation.airflow.steps(name, [row.run_id for row in rows])
        return detail.runs(rows, paging, steps, self.sources)


def places(request: Request) -> Places:
    """Addresses, as the browser that asks knows them."""
    return Places(request.scope.get("root_path") or PREFIX)


def read(request: Request, user: GetUserDep) -> Reader:
    """The reader of a request.

    Raises:
        HTTPException: 401 or 403 when there was no login.
        RetriableError: the storage did not answer.
    """
    installation: Installation = request.app.state.installation
    return Reader(installation, installation.sources(user), places(request), user)


Reading = Annotated[Reader, Depends(read)]
"""A route that takes this is for those who are logged in."""
