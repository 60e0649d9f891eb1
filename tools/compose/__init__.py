"""docker-compose.yaml as documented: started, used, disturbed, and started again. Needs a container engine."""
