"""The Java runtime of this machine: found, made to trust what the machine trusts; a cache for what is made once."""
