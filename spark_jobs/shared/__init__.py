"""What the pipelines of entities and of structures share: context, outbox, verdict, rows of Parquet files."""
