"""The pipeline of structures: read, prepare, judge."""
