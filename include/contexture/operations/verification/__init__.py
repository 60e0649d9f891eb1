"""Verifying a replica: what the topics of a publication hold, read back, against what state says they hold."""
