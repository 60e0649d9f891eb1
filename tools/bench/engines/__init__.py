"""What each engine of a cluster may be sized by: `python -m tools.bench --only engines`.

Spark standalone, an S3 server, Kafka, Celery workers with PostgreSQL and Redis are started here as `cluster/` starts
them, and asked what they cost: processor seconds, bytes, rows, connections and requests, of a run or of so many
records; and what a second worker, executor, sender or copy changes. Everything is on one host: what throughput does
across hosts is not to be seen here.
"""
