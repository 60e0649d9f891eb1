"""The second phase of a stage: from what was pulled to records that are ready to send."""
