"""Status: what the page in Airflow and `contexture status` show, as plain data without HTML, HTTP or Airflow."""
