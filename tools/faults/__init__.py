"""The fault matrix: senders that are killed, stopped and replaced at every moment of the protocol, on a real Kafka.

`make faults` runs it; docs/reference/guarantees.md says what each scenario shows.
"""
