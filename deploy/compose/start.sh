#!/bin/sh
# Starts compose.yaml: creates missing secrets (existing ones are not changed), starts all services,
# and waits until they are healthy. Arguments go to `up`; COMPOSE names another compose
# implementation, such as podman-compose.
#
#   deploy/compose/start.sh
#   deploy/compose/start.sh --secrets      only creates the secrets
set -eu
cd "$(dirname "$0")"
fail() { echo "start: $*" >&2; exit 1; }
# Only this user can enter the folder. The files are readable by others because the containers run
# as other users.
umask 022
mkdir -p secrets
chmod 700 secrets

# secret <name> <value>: writes the file atomically, unless it exists.
secret() {
  [ ! -s "secrets/$1" ] || return 0
  printf '%s\n' "$2" >"secrets/$1.new"
  mv "secrets/$1.new" "secrets/$1"
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
secret admin-token "$(random)"
secret secret-key "$(random)"
secret grafana-password "$(random)"
secret postgres-password "$(random)"
secret redis-password "$(random)"
secret database-url "postgres://tollgate:$(cat secrets/postgres-password)@postgres:5432/tollgate"
secret redis-url "redis://:$(cat secrets/redis-password)@redis:6379/0"
[ "${1:-}" != --secrets ] || exit 0

compose=${COMPOSE:-docker compose}
# shellcheck disable=SC2086
$compose version >/dev/null 2>&1 || fail "\`$compose\` does not work here: install Docker with Compose v2, or set COMPOSE"
# shellcheck disable=SC2086
$compose --file compose.yaml up --detach --wait "$@" || fail "not everything started: see $compose --file deploy/compose/compose.yaml ps, and logs"
echo "Clients connect to port ${TOLLGATE_PORT:-8080}. The administration is at http://127.0.0.1:${TOLLGATE_ADMIN_PORT:-8081}:"
echo "log in with the token in deploy/compose/secrets/admin-token."
