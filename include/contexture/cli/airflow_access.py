"""Where Airflow is, and who the command line is there: both from the environment alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from contexture.errors import ConfigurationError

URL_VARIABLE = "CONTEXTURE_AIRFLOW_URL"
TOKEN_VARIABLE = "CONTEXTURE_AIRFLOW_TOKEN"  # noqa: S105 - the name of a variable
USER_VARIABLE = "CONTEXTURE_AIRFLOW_USER"
PASSWORD_VARIABLE = "CONTEXTURE_AIRFLOW_PASSWORD"  # noqa: S105 - the name of a variable
WHO = f"{TOKEN_VARIABLE}, or {USER_VARIABLE} and {PASSWORD_VARIABLE}"
"""What tells Airflow who asks, for those who read an error."""


@dataclass(frozen=True, slots=True)
class AirflowAccess:
    """Where Airflow is and who asks; neither token nor password shows in a repr."""

    url: str
    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> AirflowAccess:
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
            raise ConfigurationError("Airflow is not told who asks", next_step=f"set {WHO}")
        return access
