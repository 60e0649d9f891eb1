"""What makes Contexture run on one machine: Java, an embedded Kafka, test servers and their processes.

Import the module you need (`contexture.sandbox.kafka`, `contexture.sandbox.java` …); this package itself loads nothing.
"""
