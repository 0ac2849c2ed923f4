#!/usr/bin/env bash
# Starts the services of deploy/compose/compose.yaml without a container engine, as root. The
# commands, variables, secrets and mounted files are the same. Debian's PostgreSQL, Redis, HAProxy
# and Prometheus replace the images. The network namespace has only a loopback, and each container's
# name is an address of it. The tests: requests through the load balancer, a node that stops, a
# database that cannot be reached. `make test-compose` calls it after the set-up.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/gateway-client.sh
fail() { echo "test-compose: $*" >&2; exit 1; }
step() { printf '\n==> %s\n' "$*"; }
PATH="$PWD/.tools/deploy/bin:$PATH:/usr/sbin"

# part <service> <command|entrypoint|environment>: words of the resolved file, each ended by a zero
# byte.
part() {
  python3 - "$work/compose.json" "$@" <<'PY'
import json, sys
file, service, part = sys.argv[1:]
found = json.load(open(file, encoding="utf-8"))["services"][service][part]
words = [f"{name}={value}" for name, value in found.items()] if part == "environment" else found
sys.stdout.write("".join(word.replace("$$", "$") + "\0" for word in words))
PY
}

wait_for() {
  local what=$1
  shift
  for _ in $(seq 150); do "$@" >/dev/null 2>&1 && return || sleep 0.1; done
  tail -n 5 "$work"/*.log
  fail "$what did not get ready"
}

# gateway <number>: starts tollgate-<number> on a separate address.
gateway() {
  local at=127.0.0.$((1 + $1)) environment
  mapfile -d '' -t environment < <(part "tollgate-$1" environment)
  install -d -m 0700 "$work/tollgate-$1"
  local start=(env -i "${environment[@]}" "TOLLGATE_PROXY_ADDR=$at:8080" "TOLLGATE_ADMIN_ADDR=$at:8081" "TOLLGATE_METRICS_ADDR=$at:9464"
    TOLLGATE_PRICES_SYNC=off "TOLLGATE_DATA_DIR=$work/tollgate-$1" "$program" --config conf/tollgate.yaml)
  "${start[@]}" serve >>"$work/tollgate-$1.log" 2>&1 &
  nodes[$1]=$!
  wait_for "tollgate-$1" "${start[@]}" health
}

all_pass() {
  local n status
  for n in $(seq 10); do
    status=$(request "$key" "$work/answer")
    [ "$status" = 200 ] || { cat "$work/answer"; fail "$1: request $n got $status"; }
  done
}

boot() {
  work=$1 program=$2
  local words nodes=()
  ip link set lo up
  # Only this namespace has these files.
  printf '127.0.0.1 localhost\n127.0.0.2 tollgate-1\n127.0.0.3 tollgate-2\n127.0.0.4 postgres\n127.0.0.5 redis\n' >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  mount -t tmpfs tmpfs /run
  cp -r "$work/a/b/compose/secrets" /run/secrets
  chmod 755 /run/secrets

  step "PostgreSQL and Redis"
  local bin=(/usr/lib/postgresql/*/bin)
  mapfile -d '' -t words < <(part postgres environment)
  local user database password
  user=$(printf '%s\n' "${words[@]}" | sed -n 's/^POSTGRES_USER=//p')
  database=$(printf '%s\n' "${words[@]}" | sed -n 's/^POSTGRES_DB=//p')
  password=$(printf '%s\n' "${words[@]}" | sed -n 's/^POSTGRES_PASSWORD_FILE=//p')
  install -d -o postgres "$work/postgres"
  local as=(setpriv --reuid postgres --regid postgres --clear-groups)
  "${as[@]}" "${bin[-1]}/initdb" --pgdata "$work/postgres" --username "$user" --pwfile "$password" --auth scram-sha-256 >/dev/null
  "${as[@]}" "${bin[-1]}/postgres" -D "$work/postgres" -h 127.0.0.4 -k "$work/postgres" >"$work/postgres.log" 2>&1 &
  local postgres=$!
  wait_for PostgreSQL "${bin[-1]}/pg_isready" --host 127.0.0.4 --username "$user"
  PGPASSWORD=$(cat "$password") psql --quiet --host 127.0.0.4 --username "$user" --dbname postgres --command "create database $database"
  mapfile -d '' -t words < <(part redis entrypoint)
  mkdir "$work/redis"
  # Only its folders and addresses differ.
  words[2]=$(printf '%s' "${words[2]}" | sed "s#/data#$work/redis#g; s#exec redis-server .*#& --bind 127.0.0.5#")
  (cd "$work/redis" && exec "${words[@]}") >"$work/redis.log" 2>&1 &
  REDISCLI_AUTH=$(cat /run/secrets/redis-password)
  export REDISCLI_AUTH
  wait_for Redis sh -c 'redis-cli -h 127.0.0.5 ping | grep -q PONG'
  ! REDISCLI_AUTH='' redis-cli -h 127.0.0.5 ping 2>/dev/null | grep -q PONG || fail "Redis asks for no password"

  step "both nodes, load balancer, Prometheus"
  gateway 1
  gateway 2
  # Fewer connections: this machine may not allow so many files.
  sed 's/bind :/bind 127.0.0.1:/; s/maxconn .*/maxconn 400/' "$work/a/b/compose/haproxy.cfg" >"$work/haproxy.cfg"
  haproxy -f "$work/haproxy.cfg" -db >"$work/haproxy.log" 2>&1 &
  wait_for "the load balancer" curl --silent --fail --noproxy '*' http://127.0.0.1:8082/
  cp "$work/a/b/compose/prometheus.yml" "$work/a/conf/prometheus/alerts.yml" "$work/"
  sed -i 's/_interval: 15s/_interval: 1s/' "$work/prometheus.yml"
  mapfile -d '' -t words < <(part prometheus command)
  words=("${words[@]/\/etc\/prometheus/$work}")
  prometheus "${words[@]/=\/prometheus/=$work/series}" --web.listen-address=127.0.0.1:9090 >"$work/prometheus.log" 2>&1 &

  step "requests through the load balancer"
  token=$(cat /run/secrets/admin-token)
  "$program" mock --addr 127.0.0.1:9177 >"$work/mock.log" 2>&1 &
  wait_for "the mock" curl --silent --noproxy '*' http://127.0.0.1:9177/
  first_user
  # The other node has the change within about a second.
  sleep 2
  all_pass "two nodes"
  recorded 10
  local each
  for each in 2 3; do
    curl --silent --noproxy '*' "http://127.0.0.$each:9464/metrics" | grep -qE '^tollgate_upstream_attempts_total\{.* [1-9]' || fail "tollgate-$((each - 1)) got no request"
  done
  targets_up() { [ "$(promtool query instant http://127.0.0.1:9090 'up{job="tollgate"} == 1' | wc -l)" = 2 ]; }
  wait_for "both nodes in Prometheus" targets_up

  step "a node stops"
  kill -TERM "${nodes[2]}"
  wait "${nodes[2]}" || fail "tollgate-2 did not stop well"
  all_pass "one node"
  recorded 20
  gateway 2

  step "the database is gone: requests go on"
  kill -INT "$postgres"
  wait "$postgres" || true
  for _ in $(seq 100); do [ "$(curl --silent --output /dev/null --write-out '%{http_code}' --noproxy '*' http://127.0.0.2:9464/readyz)" = 503 ] && break || sleep 0.1; done
  # Longer than the load balancer needs to mark a node as down.
  sleep 4
  all_pass "no database"
}

if [ "${1:-}" = boot ]; then
  boot "$2" "$3"
  exit
fi
[ "$(id -u)" = 0 ] || fail "needs root, for a network namespace"
for tool in docker-compose haproxy prometheus promtool redis-server psql ip; do command -v $tool >/dev/null || fail "$tool is missing: run make test-compose"; done
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 711 "$work"
program=${TOLLGATE_BIN:-}
if [ -z "$program" ]; then
  shopt -s nullglob
  archives=(dist/tollgate-*-linux-"$(uname -m)".tar.zst)
  [ ${#archives[@]} = 1 ] || fail "there is no program: run make dist, or name one by TOLLGATE_BIN"
  mkdir "$work/release"
  tar --directory "$work/release" --strip-components=1 --use-compress-program=unzstd -xf "${archives[0]}"
  program=$work/release/tollgate
fi
mkdir -p "$work/a/b"
cp -r conf "$work/a/conf"
cp -r deploy/compose "$work/a/b/compose"
rm -rf "$work/a/b/compose/secrets"
"$work/a/b/compose/start.sh" --secrets
TOLLGATE_SUBNET=127.0.0.0/8 docker-compose --file "$work/a/b/compose/compose.yaml" config --format json >"$work/compose.json"
# The processes that this script starts end with it.
unshare --net --mount --pid --fork --kill-child --mount-proc scripts/test-compose.sh boot "$work" "$program"
printf '\ntest-compose: all good\n'
