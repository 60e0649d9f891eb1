"""Alerts: what Airflow calls when a person should act."""
