"""The Contexture page in Airflow's UI: what `contexture.operations.status` tells, as HTML and as JSON."""
