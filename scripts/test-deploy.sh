#!/usr/bin/env bash
# Checks the files of deploy/ and .github/workflows with the tools that read them: Docker Compose,
# HAProxy, Prometheus, kustomize, Helm, Kubernetes' schemas, actionlint, zizmor. The gateway reads
# the configuration of the pods. `make test-deploy` calls it after the set-up. The program is
# TOLLGATE_BIN, or that of dist/, or one in target/.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "test-deploy: $*" >&2; exit 1; }
step() { printf '\n==> %s\n' "$*"; }
[ ! -x .tools/bin/node ] || PATH="$PWD/.tools/bin:$PATH"
PATH="$PWD/.tools/deploy/bin:$PATH:/usr/sbin"
readonly SCHEMAS=$PWD/.tools/deploy/schemas
for tool in docker-compose kubectl helm zizmor promtool haproxy node; do command -v $tool >/dev/null || fail "$tool is missing: run make test-deploy"; done

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
version=$(sed -n '/^\[package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
program() {
  local archive
  for archive in dist/tollgate-*-linux-"$(uname -m)".tar.zst; do
    [ -e "$archive" ] || break
    mkdir -p "$work/release"
    tar --directory "$work/release" --strip-components=1 --use-compress-program=unzstd -xf "$archive"
  done
  local found
  for found in "${TOLLGATE_BIN:-}" "$work/release/tollgate" "${CARGO_TARGET_DIR:-target}"/{release,debug}/tollgate; do
    [ -z "$found" ] || [ ! -x "$found" ] || { echo "$found"; return; }
  done
}
program=$(program)
[ -n "$program" ] || fail "there is no program: run make dist, or name one by TOLLGATE_BIN"
# Ignore this user's cluster and proxy settings.
export HOME=$work KUBECONFIG=/dev/null

step compose
cp -r deploy/compose "$work/compose"
rm -rf "$work/compose/secrets"
mkdir -p "$work/a/b"
mv "$work/compose" "$work/a/b/compose"
cp -r conf "$work/a/conf"
stack=$work/a/b/compose
"$stack/start.sh" --secrets
(cd "$stack/secrets" && sha256sum -- * >"$work/secrets")
"$stack/start.sh" --secrets
(cd "$stack/secrets" && sha256sum --check --quiet "$work/secrets") || fail "a second start changed secrets"
[ "$(stat -c %a "$stack/secrets")" = 700 ] || fail "others can look into the secrets"
docker-compose --file "$stack/compose.yaml" config --format json >"$work/compose.json" || fail "compose.yaml is faulty"
node tests/deploy/compose.mjs "$work/compose.json" "$version" "$work/a" conf/tollgate.yaml

step "load balancer and Prometheus"
# The names by which the containers reach each other.
sed 's/tollgate-[12]:/127.0.0.1:/' "$stack/haproxy.cfg" >"$work/haproxy.cfg"
haproxy -c -f "$work/haproxy.cfg" >"$work/log" 2>&1 || { cat "$work/log"; fail "haproxy.cfg is faulty"; }
cp "$stack/prometheus.yml" conf/prometheus/alerts.yml "$work/"
promtool check config "$work/prometheus.yml"
promtool check config conf/prometheus/prometheus.yml >/dev/null

# manifests <name>: the objects of <name>.yaml are valid, and the gateway accepts their
# configuration.
manifests() {
  node tests/deploy/manifests.mjs "$SCHEMAS" . "$version" "$work/$1.yaml" ${2:+"$work/$1.conf"}
  [ -n "${2:-}" ] || return 0
  mkdir -p "$work/run"
  echo postgres://tollgate:x@127.0.0.1:1/tollgate >"$work/run/database-url"
  echo redis://127.0.0.1:1 >"$work/run/redis-url"
  echo a-secret-of-32-characters-or-more >"$work/run/admin-token"
  cp "$work/run/admin-token" "$work/run/secret-key"
  sed "s#/run/secrets/tollgate#$work/run#; s#/var/lib/tollgate#$work/state#; s#:9464#:1#" "$work/$1.conf" >"$work/tollgate.yaml"
  # The answer must be that no gateway runs, not that the configuration is faulty.
  ! said=$(env -i "$program" --config "$work/tollgate.yaml" health 2>&1) || fail "a gateway answers on port 1"
  case $said in *"no answer from the metrics listener"*) ;; *) fail "$1: the gateway does not take its configuration: $said" ;; esac
}

step kustomize
for kustomization in base example; do
  kubectl kustomize "deploy/kustomize/$kustomization" >"$work/$kustomization.yaml" || fail "deploy/kustomize/$kustomization is faulty"
  manifests $kustomization configuration
done
kubectl kustomize deploy/kustomize/migration >"$work/migration.yaml" || fail "deploy/kustomize/migration is faulty"
manifests migration

step Helm
chart=deploy/helm/tollgate
for line in version appVersion; do grep -qx "$line: $version" $chart/Chart.yaml || fail "$chart/Chart.yaml: $line is not $version"; done
old=$(grep -noE 'tollgate[:-][0-9]+\.[0-9]+\.[0-9]+' docs/containers.md deploy/compose/compose.yaml | grep -v "$version" || true)
[ -z "$old" ] || fail "another version stands in ${old%%$'\n'*}"
helm lint --quiet --strict $chart >"$work/log" 2>&1 || { cat "$work/log"; fail "the chart is faulty"; }
helm template gate $chart >"$work/chart.yaml" 2>"$work/log" || fail "the chart cannot be rendered"
manifests chart configuration
# Everything on, everything set.
helm template tollgate $chart --namespace gateways --values tests/deploy/values.yaml >"$work/chart-full.yaml" 2>"$work/log" || fail "the chart cannot be rendered with everything on"
manifests chart-full configuration
for kind in HorizontalPodAutoscaler ServiceMonitor NetworkPolicy PodDisruptionBudget PrometheusRule Job; do
  grep -qx "kind: $kind" "$work/chart-full.yaml" || fail "the chart has no $kind"
done
for wrong in replicas=two graceSeconds=0 nonsense=1 image.digest=latest journal.maxBytes=1Gi; do
  ! helm template gate $chart --set "$wrong" >/dev/null 2>&1 || fail "the chart takes $wrong"
done
# The packaged chart must not need other files of this folder.
helm package $chart --destination "$work" >/dev/null 2>"$work/log" || { cat "$work/log"; fail "the chart cannot be packaged"; }
helm template tollgate "$work/tollgate-$version.tgz" --namespace gateways --values tests/deploy/values.yaml | cmp - "$work/chart-full.yaml" ||
  fail "the packaged chart renders something else"

step workflows
node tests/deploy/workflows.mjs .github/workflows/*.yml
zizmor --offline --quiet --min-severity medium .github/workflows || fail "zizmor has found something"
printf '\ntest-deploy: all good\n'
