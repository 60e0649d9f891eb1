"""`make demo`: the platform from nothing to verified records in Kafka, told as a story."""
