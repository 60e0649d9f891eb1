"""Recovery: state made again from the topics, where the storage that had it is lost."""
