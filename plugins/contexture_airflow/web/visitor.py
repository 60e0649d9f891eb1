"""The visitor of the page, and what they may see and do: Airflow's own users and roles decide."""

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

PageNumber = Annotated[int, Query(ge=1, le=10**9)]
"""The number of a page in an address."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """What one user may see of an installation."""

    installation: Installation
    sources: Sources
    places: Places
    airflow_user: Any

    @property
    def user(self) -> str:
        """The visitor's name in Airflow."""
        return self.installation.airflow.name(self.airflow_user)

    def may_act(self, name: str) -> bool:
        """Returns whether this visitor may change anything about a publication."""
        return self.installation.airflow.may_act(self.airflow_user, self.publication(name))

    def require_action_right(self, name: str) -> None:
        """Checks that the visitor may change a publication.

        Raises:
            ForbiddenError: this visitor may only read.
            HTTPException: 404 as `publication` has it.
        """
        if not self.may_act(name):
            raise ForbiddenError("you may see this publication, but not change it: Airflow's roles decide")

    def may_test(self, connection: str | None) -> bool:
        """Returns whether this visitor may test a connection; None: any at all."""
        return self.installation.airflow.may_test(self.airflow_user, connection)

    def may_see_connection(self, connection: str) -> bool:
        """Returns whether this visitor may see what a connection sets."""
        return self.installation.airflow.may_see_connection(self.airflow_user, connection)

    @property
    def may_see_values(self) -> bool:
        """Whether this visitor may see values of entities that no publication reads yet: who may act on all."""
        return self.installation.airflow.may_act_on_all(self.airflow_user)

    def require_test_right(self, connection: str | None) -> None:
        """Checks that the visitor may test a connection; None: any at all.

        Raises:
            ForbiddenError: this visitor may not.
        """
        if not self.may_test(connection):
            raise ForbiddenError("you may not test connections: Airflow's roles decide")

    def record_action(
        self, name: str, action: str, subject: str, reason: str, outcome: str, run_id: str | None
    ) -> None:
        """Records what this visitor did, in the operational tables where there are any."""
        at = self.sources.now
        row = InterventionRow(uuid4().hex, name, at, self.user, action, subject, reason, outcome, run_id)
        self.installation.record_action(row)

    def publication(self, name: str) -> str:
        """Returns the name of a publication that this visitor may see.

        Raises:
            HTTPException: 404 when there is none, or the visitor may not see it: the message does not say which.
        """
        if name not in self.sources.dags:
            raise HTTPException(404, "there is no such publication, or you may not see it")
        return name

    def overview(self, page: int, health: PublicationHealth | None, suspended: bool) -> Overview:
        """Returns the publications of this visitor."""
        # The publication of a file that cannot be read is unknown, so its name is for visitors who see all others.
        files = self.installation.files()
        sees_all = set(files.publications) <= set(self.sources.dags)
        bad_files = files.bad if sees_all else ()
        return overview(self.sources, page=page, health=health, suspended=suspended, bad_files=bad_files)

    def steps(self, name: str, run: RunRow | None) -> tuple[detail.StepTime, ...]:
        """Returns the steps of a run, where Airflow still knows them."""
        return self.installation.airflow.steps(name, [run.run_id]).get(run.run_id, ()) if run else ()

    def runs(self, name: str, page: int) -> detail.Runs:
        """Returns runs with the times of their steps."""
        rows, paging = detail.run_rows(self.sources, self.publication(name), page=page)
        steps = self.installation.airflow.steps(name, [row.run_id for row in rows])
        return detail.runs(rows, paging, steps, self.sources)


def places(request: Request) -> Places:
    """Returns the addresses of the page as the requesting browser knows them."""
    return Places(request.scope.get("root_path") or PREFIX)


def read(request: Request, user: GetUserDep) -> Visitor:
    """Returns the visitor of a request.

    Raises:
        HTTPException: 401 or 403 when there was no login.
        RetriableError: the storage did not answer.
    """
    installation: Installation = request.app.state.installation
    return Visitor(installation, installation.sources(user), places(request), user)


CurrentVisitor = Annotated[Visitor, Depends(read)]
"""A route with this parameter requires a login."""
