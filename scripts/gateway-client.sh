# shellcheck shell=bash
# Sourced by the scripts that test a gateway: calls of an administrator and of a client. Needs curl,
# python3, `token` (the admin token), a function `fail`, and a mock provider at 127.0.0.1:9177.

# Calls an administration operation as the administrator: <operation> <JSON>.
admin() {
  # shellcheck disable=SC2154
  curl --silent --show-error --fail-with-body --noproxy '*' --header "authorization: Bearer $token" --header 'content-type: application/json' \
    --data "$2" "http://127.0.0.1:8081/api/actions/$1"
}

# Sends a request with this key: prints the status, writes the reply to the file.
request() {
  curl --silent --output "$2" --write-out '%{http_code}' --noproxy '*' --header "x-api-key: $1" --header 'content-type: application/json' \
    --data '{"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}' \
    http://127.0.0.1:8080/v1/messages
}

# The number of recorded requests.
requests() { admin usage-logs/getUsageLogs '{}' | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["data"]["logs"]))'; }

# Waits until this number of requests is recorded.
recorded() {
  for _ in $(seq 50); do [ "$(requests)" = "$1" ] && return || sleep 0.2; done
  fail "$(requests) requests are on record, not $1"
}

# Adds a user, whose key is then in `key`, and the mock as provider.
first_user() {
  key=$(admin users/addUser '{"name": "ada"}' | sed -n 's/.*"key":"\(sk-[0-9a-f]\{32\}\)".*/\1/p')
  [ -n "$key" ] || fail "the new user came without a key"
  admin providers/addProvider '{"name": "mock", "provider_type": "native", "url": "http://127.0.0.1:9177", "key": "sk-mock"}' >/dev/null
}
