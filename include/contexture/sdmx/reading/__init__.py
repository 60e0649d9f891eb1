"""What a read of a registry decides: which structures are meant, what its log asks for, when nothing changed."""
