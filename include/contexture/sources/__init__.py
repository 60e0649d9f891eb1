"""Where events come from: context brokers (NGSI) and structure registries (SDMX), over one HTTP client."""
