"""What the command line asks of the user's own Airflow."""

from __future__ import annotations

import httpx

from contexture.operations.airflow_client import AirflowClient, AirflowCredentials


def test_answers_are_asked_for_unpacked() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"is_paused": True})

    access = AirflowCredentials(url="http://airflow:8080", token="given")
    assert AirflowClient(access, httpx.MockTransport(answer)).is_paused("publish_cars")
    assert [request.headers["accept-encoding"] for request in asked] == ["identity"]
