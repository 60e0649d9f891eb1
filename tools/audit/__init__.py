"""What the checks ask of the repository as a whole: known vulnerabilities of its pins, secrets in its files."""
