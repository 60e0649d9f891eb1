#!/bin/bash
# A test server of the sandbox, which listens on 127.0.0.1 only. What docker-compose.yaml says to the real one is ignored.
set -e
socat "TCP-LISTEN:$OUTER_PORT,fork,reuseaddr" "TCP:127.0.0.1:$INNER_PORT" &
exec python -m contexture_sandbox $SERVER --port "$INNER_PORT"
