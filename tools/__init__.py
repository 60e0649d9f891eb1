"""Programs that test and measure Contexture: not part of the distribution, and never imported by the product."""
