"""Stand-ins for the images of docker-compose.yaml, made without a container registry."""
