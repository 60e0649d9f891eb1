"""Converting one structure to a format that its registry does not write, and recording what is lost."""
