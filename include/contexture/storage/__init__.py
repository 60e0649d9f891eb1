"""What lies on storage between the parts: landing, outbox, state, and their manifests."""
