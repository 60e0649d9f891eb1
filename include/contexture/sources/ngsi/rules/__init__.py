"""Row rules of entities: what one must be to be published, and what is worth a warning."""
