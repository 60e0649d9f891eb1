"""What Airflow calls when something has happened that a person should know."""
