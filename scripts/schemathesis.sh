#!/bin/sh
# Tests a running gateway with schemathesis against its own OpenAPI document: there must be no 5xx,
# and no status or body that the document lacks. SCHEMATHESIS_SECONDS (60) bounds the run as
# administrator; a second run as a user, about the user's own usage, takes half as long.
# SCHEMATHESIS_SEED (1) is the seed. It is not part of `make test`, because its coverage depends on
# the machine. Operations that connect to other servers are left out.
set -e
cd "$(dirname "$0")/.."
bin=${TOLLGATE_BIN:-${CARGO_TARGET_DIR:-target}/debug/tollgate}
tools=.tools/schemathesis
# A copied folder keeps the path of its old interpreter.
"$tools/bin/schemathesis" --version >/dev/null 2>&1 || rm -rf "$tools"
[ -x $tools/bin/schemathesis ] || {
  echo "installing schemathesis into $tools"
  mkdir -p .tools && python3 -m venv $tools && $tools/bin/pip install -q 'schemathesis==4.32.5'
}
port=${SCHEMATHESIS_PORT:-18471}
data=$(mktemp -d)
ADMIN_TOKEN=schemathesis-token TOLLGATE_DATA_DIR="$data" TOLLGATE_ADMIN_ADDR=127.0.0.1:$port \
  TOLLGATE_PROXY_ADDR=127.0.0.1:$((port + 1)) TOLLGATE_METRICS_ADDR=127.0.0.1:$((port + 2)) TOLLGATE_PRICES_SYNC=off LOG_LEVEL=error \
  "$bin" serve >/dev/null &
gateway=$!
trap 'kill $gateway 2>/dev/null; wait $gateway 2>/dev/null || true; rm -rf "$data"' EXIT
for _ in $(seq 100); do
  curl -sf -o "$data/openapi.json" "http://127.0.0.1:$port/api/actions/openapi.json" && break
  sleep 0.1
done
# Create the records that the document's examples name: the first user, key, provider and word, and
# a second key.
ask() { curl -sS "http://127.0.0.1:$port/api/actions/$1" -H 'authorization: Bearer schemathesis-token' -d "$2"; }
ask providers/addProvider '{"name":"main","url":"http://127.0.0.1:9","key":"upstream-key"}' >"$data/made"
ask users/addUser '{"name":"ada"}' >>"$data/made"
ask keys/addKey '{"userId":1,"name":"second"}' >>"$data/made"
ask sensitive-words/createSensitiveWordAction '{"word":"a word","matchType":"contains"}' >>"$data/made"
key=$(ask users/addUser '{"name":"bob"}' | grep -o 'sk-[0-9a-f]\{32\}')
try() {
  most=$1 credential=$2
  shift 2
  $tools/bin/schemathesis run "$data/openapi.json" --url "http://127.0.0.1:$port" -H "authorization: Bearer $credential" "$@" \
    --checks not_a_server_error,status_code_conformance,response_schema_conformance,content_type_conformance \
    --phases examples,coverage,fuzzing -n 15 --seed "${SCHEMATHESIS_SEED:-1}" --request-timeout 10 --max-time "$most"
}
seconds=${SCHEMATHESIS_SECONDS:-60}
try $((seconds / 2)) "$key" --include-path-regex '/my-usage/'
try "$seconds" schemathesis-token --exclude-path /api/events \
  --exclude-path-regex 'auth/log|testProvider|testWebhook|syncLiteLLM|/my-usage/|actions/scalar|actions/docs'
