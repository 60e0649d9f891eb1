"""A client of Airflow's REST API: starting DAG runs, and what the environment gives to log in."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from contexture.errors import ConfigurationError, RetriableError

URL_VARIABLE = "CONTEXTURE_AIRFLOW_URL"
TOKEN_VARIABLE = "CONTEXTURE_AIRFLOW_TOKEN"  # noqa: S105 - the name of a variable
USER_VARIABLE = "CONTEXTURE_AIRFLOW_USER"
PASSWORD_VARIABLE = "CONTEXTURE_AIRFLOW_PASSWORD"  # noqa: S105 - the name of a variable
WHO = f"{TOKEN_VARIABLE}, or {USER_VARIABLE} and {PASSWORD_VARIABLE}"
"""The variables that hold the credentials, as errors name them."""


@dataclass(frozen=True, slots=True)
class AirflowCredentials:
    """Where Airflow is and who asks; neither token nor password shows in a repr."""

    url: str
    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> AirflowCredentials:
        """What the CONTEXTURE_AIRFLOW_… variables say.

        Raises:
            ConfigurationError: something is missing; the error names what to set.
        """
        variables = os.environ if environment is None else environment
        access = cls(
            url=variables.get(URL_VARIABLE, "").rstrip("/"),
            token=variables.get(TOKEN_VARIABLE, ""),
            user=variables.get(USER_VARIABLE, ""),
            password=variables.get(PASSWORD_VARIABLE, ""),
        )
        try:
            address = urlsplit(access.url)
        except ValueError:  # half of an IPv6 address
            address = urlsplit("")
        if address.scheme not in {"http", "https"} or not address.hostname or "@" in address.netloc:
            raise ConfigurationError(
                f"{URL_VARIABLE} is not the address of Airflow",
                next_step=f"set it to the UI's address, such as http://127.0.0.1:8080, and {WHO}",
            )
        if not access.token and not (access.user and access.password):
            raise ConfigurationError("Airflow has no login for this request", next_step=f"set {WHO}")
        return access


def airflow_of_environment() -> AirflowClient | None:
    """The Airflow that CONTEXTURE_AIRFLOW_URL names; None where it names none.

    Raises:
        ConfigurationError: the address is wrong, or nothing says who asks.
    """
    return AirflowClient(AirflowCredentials.from_environment()) if os.environ.get(URL_VARIABLE) else None


_TIMEOUT_SECONDS = 30.0
# Airflow's own tokens are good for a day.
_TOKEN_SECONDS = 600.0
_BACKFILL_TRIES = 5
_PUBLISH = "publish_"


class AirflowClient:
    """One Airflow.

    Args:
        access: where it is, and who asks.
        transport: for tests.
        first_wait_seconds: before a backfill is asked for again whose database was locked; doubled each time.
        timeout_seconds: of one request.
    """

    def __init__(
        self,
        access: AirflowCredentials,
        transport: httpx.BaseTransport | None = None,
        *,
        first_wait_seconds: float = 1.0,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        self._access = access
        self._first_wait_seconds = first_wait_seconds
        self._token, self._token_expires = access.token, 0.0
        # What is not packed cannot unpack into more memory than there is.
        plain = {"accept-encoding": "identity"}
        self._http = httpx.Client(base_url=access.url, timeout=timeout_seconds, transport=transport, headers=plain)

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def is_paused(self, dag_id: str) -> bool:
        """Whether runs of a DAG wait until it is resumed.

        Raises:
            ConfigurationError: Airflow does not know the DAG, or refuses us.
            RetriableError: Airflow did not answer.
        """
        return bool(self.request("GET", f"/api/v2/dags/{dag_id}", dag_id).json()["is_paused"])

    def pools(self) -> set[str]:
        """The names of our pools that it has. Raises as `is_paused`."""
        answer = self.request("GET", "/api/v2/pools?pool_name_pattern=contexture_", "resynchronise")
        return {str(pool["name"]) for pool in answer.json()["pools"]}

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Starts a run; gives its id. Raises as `is_paused`."""
        body = {"logical_date": None, "conf": dict(conf)}
        answer = self.request("POST", f"/api/v2/dags/{dag_id}/dagRuns", dag_id, json=body)
        return str(answer.json()["dag_run_id"])

    def backfill(self, dag_id: str, first: datetime, last: datetime, conf: Mapping[str, object]) -> int:
        """Starts a backfill of the intervals that start from `first` to `last`, both included; gives its id.

        Raises:
            ConfigurationError: Airflow does not know the DAG, refuses us, or runs another backfill of it.
            RetriableError: Airflow did not answer.
        """
        body = _backfill(dag_id, first, last, conf)
        # Where its database was locked (SQLite, of a busy scheduler) Airflow takes back what it began, and says 503.
        tries = Retrying(
            stop=stop_after_attempt(_BACKFILL_TRIES),
            wait=wait_exponential(self._first_wait_seconds, max=8 * self._first_wait_seconds),
            retry=retry_if_exception(_was_locked),
            reraise=True,
        )
        return int(tries(self.request, "POST", "/api/v2/backfills", dag_id, json=body).json()["id"])

    def backfilled(self, dag_id: str, first: datetime, last: datetime, conf: Mapping[str, object]) -> set[datetime]:
        """The starts of the intervals that such a backfill would run now: it leaves out those that have a run which
        has not ended. Raises as `backfill`.
        """
        body = _backfill(dag_id, first, last, conf)
        answer = self.request("POST", "/api/v2/backfills/dry_run", dag_id, json=body)
        return {datetime.fromisoformat(each["logical_date"]) for each in answer.json()["backfills"]}

    def page(self, dag_id: str, run_id: str) -> str:
        return str(
            httpx.URL(self._access.url).join(
                f"{httpx.URL(self._access.url).path.rstrip('/')}/dags/{dag_id}/runs/{run_id}"
            )
        )

    def request(
        self,
        method: str,
        path: str,
        dag_id: str = "",
        *,
        allowed: Container[int] = (),
        json: object = None,
        params: Mapping[str, str | int | bool] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """What Airflow answers to a request with our token.

        Args:
            method, path, json, params, headers: of the request; the path begins with a slash.
            dag_id: what the request is about, for errors.
            allowed: codes of failures that are answers too.

        Raises:
            ConfigurationError: Airflow does not know the DAG, is busy with it, or refuses us or the request.
            RetriableError: Airflow did not answer.
        """
        sent = {**(headers or {}), "Authorization": f"Bearer {self._current_token()}"}
        answer = self._send(method, path, json=json, params=params, headers=sent)
        if answer.status_code in allowed:
            return answer
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise ConfigurationError(
                f"Airflow at {self._access.url} has no DAG {dag_id}",
                next_step="check whether its file shows as an import error in the UI",
            )
        if answer.status_code == httpx.codes.CONFLICT:
            raise ConfigurationError(
                f"Airflow is busy with another backfill of {dag_id}",
                next_step="wait for its end, or cancel it; Airflow closes it up to half a minute after its last run",
            )
        if not answer.is_success:
            raise ConfigurationError(
                f"Airflow responded with {answer.status_code} to {method} {path}: {answer.text[:300]}",
                next_step="correct the request, or read the log of its API server",
            )
        return answer

    def _current_token(self) -> str:
        if self._access.token or time.monotonic() < self._token_expires:
            return self._token
        who = {"username": self._access.user, "password": self._access.password}
        answer = self._send("POST", "/auth/token", json=who)
        if not answer.is_success:
            raise ConfigurationError(
                f"Airflow refuses a token to {self._access.user} ({answer.status_code})", next_step=f"correct {WHO}"
            )
        self._token, self._token_expires = str(answer.json()["access_token"]), time.monotonic() + _TOKEN_SECONDS
        return self._token

    def _send(
        self,
        method: str,
        path: str,
        *,
        json: object,
        params: Mapping[str, str | int | bool] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=json, params=params, headers=headers)
        except httpx.HTTPError as error:
            raise RetriableError(
                f"Airflow at {self._access.url} did not respond: {type(error).__name__}",
                next_step=f"check whether its API server runs, and whether {URL_VARIABLE} is right",
            ) from error
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise ConfigurationError(
                f"Airflow refuses {self._access.user or 'the token'} ({answer.status_code} to {method} {path})",
                next_step=f"correct {WHO}; the user must be allowed to start DAG runs",
            )
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise RetriableError(
                f"Airflow responded with {answer.status_code} to {method} {path}{_detail(answer)}",
                next_step="retry; if that does not help, read the log of its API server",
                status=answer.status_code,
            )
        return answer


def _backfill(dag_id: str, first: datetime, last: datetime, conf: Mapping[str, object]) -> dict[str, object]:
    return {
        "dag_id": dag_id,
        "from_date": first.isoformat(),
        "to_date": last.isoformat(),
        "dag_run_conf": dict(conf),
        "run_backwards": False,
        "reprocess_behavior": "completed",
        "max_active_runs": 1,
        "run_on_latest_version": True,
    }


def _was_locked(error: BaseException) -> bool:
    return isinstance(error, RetriableError) and error.context.get("status") == httpx.codes.SERVICE_UNAVAILABLE


def _detail(answer: httpx.Response) -> str:
    """What Airflow itself says of being unavailable; other failures may quote anything."""
    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
        return ""
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {detail[:200]}" if isinstance(detail, str) else ""
