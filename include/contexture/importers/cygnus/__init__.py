"""From Cygnus to Contexture: an agent becomes publications, and every difference is listed."""
