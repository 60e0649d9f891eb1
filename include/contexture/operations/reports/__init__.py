"""Data quality of a publication's runs, as one document that needs nothing else: HTML for people, JSON for scripts."""
