"""The tasks of a run, one operator each: settle, stage, quality_gate, publish, conclude."""
