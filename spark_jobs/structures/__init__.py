"""Structures of a registry in a run."""
