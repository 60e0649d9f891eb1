"""`make demo`: the platform from nothing to verified records in Kafka, as a scenario."""
