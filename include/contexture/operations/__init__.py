"""What the people who run Contexture see and set."""
