"""What the triggerer runs for Contexture."""
