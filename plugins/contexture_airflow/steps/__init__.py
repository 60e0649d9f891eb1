"""The steps of a run as functions over storage and a target, which tests call with fakes.

A step is loaded when a task runs, because pyarrow comes with it. Only `resync` is loaded when a DAG file is parsed.
"""
