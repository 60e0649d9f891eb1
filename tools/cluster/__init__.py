"""The same platform on the engines of many machines, all of them on this one, and what becomes of it when parts die.

CeleryExecutor with PostgreSQL and Redis, a Spark master with two workers, three Kafka brokers, and the home on an
object store. `python -m tools.cluster` (or `make cluster-test`) starts it, publishes, kills a Spark executor, a Kafka
broker and a Celery worker in the middle of their work, and compares what is in Kafka with what was prepared.
"""
