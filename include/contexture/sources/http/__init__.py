"""HTTP to sources: connection, tokens, retries, decoding within a bound, and errors by what to do about them."""
