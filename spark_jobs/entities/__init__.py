"""The pipeline of entities: read, prepare, judge."""
