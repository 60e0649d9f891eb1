"""NGSI: entities, the rules for them, and clients of context brokers."""
