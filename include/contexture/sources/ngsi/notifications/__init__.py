"""Notifications of a context broker: the entities of its HTTP request to a subscriber, in each of the known forms."""
