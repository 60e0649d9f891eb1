"""Python data sources that every Spark job can use."""
