#!/usr/bin/env bash
# Starts the gateway with a mock provider of each type, a user and a key, and prints commands to
# paste.
#
#   scripts/demo.sh           runs until Ctrl-C; stores nothing
#   scripts/demo.sh --check   runs the printed commands itself, and fails when one does
#
# Expects target/debug/tollgate (make demo builds it), or the program named by DEMO_PROGRAM.
# Other addresses are set with TOLLGATE_PROXY_ADDR, TOLLGATE_ADMIN_ADDR, TOLLGATE_METRICS_ADDR and
# MOCK_ADDR.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${DEMO_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/tollgate}
mock=${MOCK_ADDR:-127.0.0.1:9100}
export TOLLGATE_PROXY_ADDR=${TOLLGATE_PROXY_ADDR:-127.0.0.1:8080}
export TOLLGATE_ADMIN_ADDR=${TOLLGATE_ADMIN_ADDR:-127.0.0.1:8081}
export TOLLGATE_METRICS_ADDR=${TOLLGATE_METRICS_ADDR:-127.0.0.1:9464}
export ADMIN_TOKEN=${ADMIN_TOKEN:-demo-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')}
export TOLLGATE_SHUTDOWN_GRACE=${TOLLGATE_SHUTDOWN_GRACE:-2s}
export TOLLGATE_PRICES_SYNC=${TOLLGATE_PRICES_SYNC:-off}
unset DATABASE_URL
TOLLGATE_DATA_DIR=$(mktemp -d)
export TOLLGATE_DATA_DIR
log=$TOLLGATE_DATA_DIR/demo.log
started=()

clean_up() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$TOLLGATE_DATA_DIR"
}
trap clean_up EXIT
trap 'exit 0' INT TERM

fail() {
  printf 'demo: %s\n' "$*" >&2
  [ ! -s "$log" ] || tail -n 20 "$log" >&2
  exit 1
}

# Waits until an address answers, for ten seconds at most; fails at once if its process has ended.
answers() {
  for _ in $(seq 100); do
    curl -sf -o /dev/null --max-time 2 "$2" && return
    kill -0 "$1" 2>/dev/null || fail "$3 did not start"
    sleep 0.1
  done
  fail "$3 does not answer at $2"
}

# action <module/operation> <json>: one call of the administration API.
action() {
  local reply
  reply=$(curl -sS "http://$TOLLGATE_ADMIN_ADDR/api/actions/$1" -H "authorization: Bearer $ADMIN_TOKEN" \
    -H 'content-type: application/json' -d "$2")
  case $reply in *'"ok":true'*) printf '%s' "$reply" ;; *) fail "$1 answered: $reply" ;; esac
}

[ -x "$program" ] || fail "$program is not there: run make demo"
"$program" mock --addr "$mock" >>"$log" 2>&1 &
started+=($!)
answers $! "http://$mock/mock/stats" "the mock provider"
"$program" serve >>"$log" 2>&1 &
started+=($!)
gateway=$!
answers $gateway "http://$TOLLGATE_METRICS_ADDR/readyz" "the gateway"

for type in native native-auth responses chat-compatible alt-cli; do
  action providers/addProvider \
    "{\"name\":\"mock-$type\",\"url\":\"http://$mock\",\"key\":\"mock-key\",\"provider_type\":\"$type\"}" >/dev/null
done
key=$(action users/addUser '{"name":"demo"}' | sed -n 's/.*"key":"\(sk-[0-9a-f]\{32\}\)".*/\1/p')
[ -n "$key" ] || fail "the new user came without a key"

at=http://$TOLLGATE_PROXY_ADDR
say='Say hello in five words.'
json="-H 'content-type: application/json'"
names=(native responses chat-compatible alt-cli 'streamed' 'what it cost')
commands=(
  "curl $at/v1/messages -H 'x-api-key: $key' -H 'anthropic-version: 2023-06-01' $json -d '{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":100,\"messages\":[{\"role\":\"user\",\"content\":\"$say\"}]}'"
  "curl $at/v1/responses -H 'authorization: Bearer $key' $json -d '{\"model\":\"gpt-5\",\"input\":\"$say\"}'"
  "curl $at/v1/chat/completions -H 'authorization: Bearer $key' $json -d '{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"$say\"}]}'"
  "curl $at/v1beta/models/gemini-2.5-flash:generateContent -H 'x-goog-api-key: $key' $json -d '{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"$say\"}]}]}'"
  "curl -N $at/v1/messages -H 'x-api-key: $key' -H 'anthropic-version: 2023-06-01' $json -d '{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":100,\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$say\"}]}'"
  "curl http://$TOLLGATE_ADMIN_ADDR/api/actions/usage-logs/getUsageLogs -H 'authorization: Bearer $ADMIN_TOKEN' $json -d '{}'"
)

printf '\nThe gateway is at %s, its administration at http://%s\n' "$at" "$TOLLGATE_ADMIN_ADDR"
printf 'API key: %s   admin token: %s\n' "$key" "$ADMIN_TOKEN"
for i in "${!commands[@]}"; do
  printf '\n# %s\n%s\n' "${names[i]}" "${commands[i]}"
done
printf '\nFor Claude Code:\nANTHROPIC_BASE_URL=%s ANTHROPIC_AUTH_TOKEN=%s claude\n' "$at" "$key"

if [ "${1:-}" = --check ]; then
  for i in "${!commands[@]}"; do
    reply=$(bash -c "${commands[i]/curl /curl -sS --fail-with-body --max-time 20 }") || fail "${names[i]}: $reply"
    printf '\n==> %s\n%.400s\n' "${names[i]}" "$reply"
  done
  # The five requests, as soon as the ledger's writer has written them to the database.
  for _ in $(seq 50); do
    reply=$(action usage-logs/getUsageLogs '{}')
    case $reply in *'"total":5,'*'"unpriced":0,'*) exit 0 ;; esac
    sleep 0.1
  done
  fail "the usage log does not hold the five requests with their cost: $reply"
fi
printf '\nThe log follows; Ctrl-C ends the demo.\n\n'
tail -n +1 -f "$log" &
started+=($!)
wait $gateway
