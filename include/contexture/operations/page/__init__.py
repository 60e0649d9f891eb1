"""What the Contexture page in Airflow shows, as plain data: nothing here knows HTML, HTTP or Airflow."""
