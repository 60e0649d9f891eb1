"""Importers: publications from the configuration of other programs."""
