"""Who reads the page, and what they may see: Airflow's own users and roles decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Depends, HTTPException, Query, Request

from contexture.operations.page import detail
from contexture.operations.page.overview import Overview, overview
from contexture.operations.page.sources import Sources
from contexture.operations.page.standing import Standing
from contexture_airflow.ui.installation import Installation
from contexture_airflow.ui.mount import PREFIX
from contexture_airflow.ui.rendering import Places

Number = Annotated[int, Query(ge=1, le=10**9)]
"""The number of a page, as an address gives it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What one user may see of an installation."""

    installation: Installation
    sources: Sources
    places: Places

    def publication(self, name: str) -> str:
        """The name of a publication that there is for this reader.

        Raises:
            HTTPException: 404 when there is none, or the reader may not see it: which of both is not told.
        """
        if name not in self.sources.dags:
            raise HTTPException(404, "there is no such publication, or it is not yours to see")
        return name

    def overview(self, page: int, standing: Standing | None) -> Overview:
        """The publications of this reader."""
        # Whose a file is that can't be read is not known: its name is for those who see everything else.
        files = self.installation.files()
        sees_all = set(files.publications) <= set(self.sources.dags)
        return overview(self.sources, page=page, standing=standing, bad_files=files.bad if sees_all else ())

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
        HTTPException: 401 or 403 when nobody is logged in.
        RetriableError: the storage did not answer.
    """
    installation: Installation = request.app.state.installation
    return Reader(installation, installation.sources(user), places(request))


Reading = Annotated[Reader, Depends(read)]
"""A route that takes this is for those who are logged in."""
