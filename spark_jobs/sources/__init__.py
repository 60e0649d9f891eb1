"""Sources as Spark sees them: Python Data Sources that anyone can read from."""
