#!/bin/bash
# As the image apache/kafka: KAFKA_* becomes server.properties, and an empty folder is formatted.
set -e
java -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup \
  --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
exec java ${KAFKA_HEAP_OPTS:--Xmx1G} -Dlog4j2.configurationFile=/etc/kafka/docker/console.properties \
  -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
