"""What a read of a registry decides: which structures are selected, what its log requires, when nothing changed."""
