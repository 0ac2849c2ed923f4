#!/bin/sh
# Lets schemathesis try a running gateway against its own API document: no 5xx, no status or body that the document lacks.
# SCHEMATHESIS_SECONDS (60) is the whole time; TOLLGATE_BIN the program. Operations that reach out to other servers are left out.
set -e
cd "$(dirname "$0")/.."
bin=${TOLLGATE_BIN:-${CARGO_TARGET_DIR:-target}/debug/tollgate}
tools=.tools/schemathesis
[ -x $tools/bin/schemathesis ] || {
  echo "installing schemathesis into $tools"
  mkdir -p .tools && python3 -m venv $tools && $tools/bin/pip install -q 'schemathesis==4.32.5'
}
port=${SCHEMATHESIS_PORT:-18471}
data=$(mktemp -d)
ADMIN_TOKEN=schemathesis-token TOLLGATE_DATA_DIR="$data" TOLLGATE_ADMIN_ADDR=127.0.0.1:$port \
  TOLLGATE_PROXY_ADDR=127.0.0.1:$((port + 1)) TOLLGATE_METRICS_ADDR=127.0.0.1:$((port + 2)) LOG_LEVEL=error "$bin" serve >/dev/null &
gateway=$!
trap 'kill $gateway 2>/dev/null; wait $gateway 2>/dev/null || true; rm -rf "$data"' EXIT
for _ in $(seq 100); do
  curl -sf -o "$data/openapi.json" "http://127.0.0.1:$port/api/actions/openapi.json" && break
  sleep 0.1
done
$tools/bin/schemathesis run "$data/openapi.json" --url "http://127.0.0.1:$port" -H 'authorization: Bearer schemathesis-token' \
  --exclude-path /api/events --exclude-path-regex 'auth/log|testProvider|testWebhook|syncLiteLLM' \
  --checks not_a_server_error,status_code_conformance,response_schema_conformance,content_type_conformance \
  --phases fuzzing -n 15 --request-timeout 10 --max-time "${SCHEMATHESIS_SECONDS:-60}"
