"""What makes Contexture run on one machine: Java, an embedded Kafka, test servers and their processes.

Import the module you need (`contexture_sandbox.kafka`, `contexture.java.runtime` …); this package itself loads nothing.
"""
