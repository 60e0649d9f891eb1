"""What the tasks do, without Airflow: functions over storage and a target, which tests call with fakes.

Loaded when a task runs, never when a DAG file is parsed: pyarrow comes with it.
"""
