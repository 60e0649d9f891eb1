#!/bin/bash
# As the image postgres: the first start makes the user and the database of the environment.
set -e
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
install -d -o postgres -g postgres -m 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  word=$(mktemp)
  printf %s "$POSTGRES_PASSWORD" > "$word"
  chown postgres "$word"
  as_postgres initdb -D "$PGDATA" -U "$POSTGRES_USER" --encoding=UTF8 --locale=C.UTF-8 --pwfile="$word" \
    --auth-local=trust --auth-host=scram-sha-256
  rm "$word"
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  as_postgres pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  as_postgres psql -U "$POSTGRES_USER" -d postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
  as_postgres pg_ctl -D "$PGDATA" -w stop
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D "$PGDATA" -c "listen_addresses=*"
