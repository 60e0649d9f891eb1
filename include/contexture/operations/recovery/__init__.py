"""Making state again from the topics, where the storage that held it is lost."""
