"""The Contexture page in Airflow's UI: `contexture.operations.status` as HTML and as JSON."""
