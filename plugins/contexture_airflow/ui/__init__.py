"""The Contexture page in Airflow's UI: what `contexture.operations.page` tells, as HTML and as JSON."""
