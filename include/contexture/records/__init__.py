"""Records: topics, messages, CloudEvents, changes and batches, as pure functions over events."""
