"""Connections of Airflow: their types, hooks, and the settings that publications take from them."""
