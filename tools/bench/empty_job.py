"""What the empty DAG submits to Spark: a session that starts and stops."""

from __future__ import annotations

from pyspark.sql import SparkSession

if __name__ == "__main__":
    SparkSession.builder.appName("empty").getOrCreate().stop()
