#!/usr/bin/env bash
# Boots the OCI archive of dist/ to its first request, as root. buildah unpacks it, and bubblewrap
# starts its command as its user, with a read-only root, no capabilities, and its volume as the only
# writable folder. The network namespace has only a loopback. Then buildah builds the Dockerfile's
# stages after the compiler, and both images must be the same. Run `make image` before;
# `make test-image` does both.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/gateway-client.sh
fail() { echo "test-image: $*" >&2; exit 1; }
step() { printf '\n==> %s\n' "$*"; }

# This part runs in the separate network namespace.
boot() {
  local work=$1
  mapfile -d '' -t user < <(python3 scripts/image-config.py "$work/config" user)
  mapfile -d '' -t command < <(python3 scripts/image-config.py "$work/config" command)
  mapfile -d '' -t health < <(python3 scripts/image-config.py "$work/config" health)
  mapfile -d '' -t environment < <(python3 scripts/image-config.py "$work/config" environment)
  ip link set lo up
  [ "${user[*]}" = "65532 65532" ] || fail "the image's user is ${user[*]}"

  step "first start, as ${user[0]} on a read-only root"
  # contained <command…>: as a container engine runs it.
  contained() {
    exec env -i "${environment[@]}" /usr/bin/setpriv --reuid "${user[0]}" --regid "${user[1]}" --clear-groups \
      --bounding-set -all --inh-caps -all --no-new-privs \
      bwrap --unshare-user --unshare-ipc --unshare-pid --unshare-uts --as-pid-1 --die-with-parent \
      --ro-bind "$work/root" / --dev /dev --proc /proc --bind "$work/state" /var/lib/tollgate \
      --chdir /var/lib/tollgate "$@"
  }
  healthy() { (contained "${health[@]}") >"$work/health" 2>&1; }
  start() {
    (contained --info-fd 3 "${command[@]}" 3>"$work/info") >>"$work/log" 2>&1 &
    gateway=$!
    for _ in $(seq 100); do
      healthy && return
      kill -0 "$gateway" 2>/dev/null || break
      sleep 0.1
    done
    cat "$work/log" "$work/health"
    fail "it did not get ready"
  }
  # Send the signal to the program, as a container engine does, not to bubblewrap.
  stop() {
    kill -TERM "$(sed -n 's/.*"child-pid": \([0-9]*\).*/\1/p' "$work/info")"
    wait "$gateway" || fail "it did not stop well: $(tail -n 3 "$work/log")"
  }
  ! healthy || fail "the health check passes without a gateway"
  start
  grep -q '^ready' "$work/health" || fail "the health check says: $(cat "$work/health")"
  pid=$(pgrep --newest --full '^/usr/bin/tollgate ') || fail "the process is not to be found"
  grep -q '^Uid:.65532.65532.65532.65532$' "/proc/$pid/status" || fail "it runs as another user: $(grep Uid "/proc/$pid/status")"
  grep -q '^CapEff:.0*$' "/proc/$pid/status" || fail "it has capabilities: $(grep CapEff "/proc/$pid/status")"
  grep -qE '^[^ ]+ [^ ]+ [^ ]+ [^ ]+ / ro' "/proc/$pid/mountinfo" || fail "its root is not read-only"

  step "first request"
  token=$(cat "$work/state/admin.token")
  (contained /usr/bin/tollgate mock --addr 127.0.0.1:9177) >"$work/mock.log" 2>&1 &
  for _ in $(seq 50); do curl --silent --output /dev/null --noproxy '*' http://127.0.0.1:9177/ && break || sleep 0.1; done
  first_user
  [ "$(request "$key" "$work/answer")" = 200 ] || { cat "$work/answer"; fail "the first request failed"; }
  grep -q '"type":"message"' "$work/answer" || fail "the reply is no message: $(cat "$work/answer")"
  recorded 1

  step "stop, and start on the same volume"
  stop
  start
  [ "$(request "$key" "$work/answer")" = 200 ] || fail "the key does not work after a restart"
  recorded 2
  stop
  [ -z "$(find "$work/state" ! -uid 65532)" ] || fail "files of the volume belong to others"
}

if [ "${1:-}" = boot ]; then
  boot "$2"
  exit
fi
[ "$(id -u)" = 0 ] || fail "needs root, to become the image's user"
shopt -s nullglob
archives=(dist/tollgate-*-linux-"$(uname -m)".oci.tar)
[ ${#archives[@]} = 1 ] || fail "dist/ has ${#archives[@]} OCI archives for $(uname -m), one is wanted: run make image"
work=$(mktemp -d)
# Stop if a mount could not be undone: the removal would go into it.
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 711 "$work"

engine=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
# unpack <image> <folder>: writes the image's files there.
unpack() {
  local container
  container=$("${engine[@]}" from --pull-never "$1")
  cp -a "$("${engine[@]}" mount "$container")" "$2"
  "${engine[@]}" umount "$container" >/dev/null
  "${engine[@]}" rm "$container" >/dev/null
}

step "unpack ${archives[0]}"
image=$("${engine[@]}" pull --quiet "oci-archive:${archives[0]}") || fail "buildah does not take the archive"
"${engine[@]}" inspect --type image --format '{{.Config}}' "$image" >"$work/config"
unpack "$image" "$work/root"
[ "$(stat -c '%u:%g %a' "$work/root/var/lib/tollgate")" = "65532:65532 700" ] || fail "the image's user cannot write its volume"
strangers=$(find "$work/root" ! -path "$work/root/var/lib/tollgate" \( ! -uid 0 -o ! -gid 0 -o -perm /6000 \) -printf '%P ')
[ -z "$strangers" ] || fail "these files are not root's, or set a user: $strangers"
for path in bin/sh usr/bin/sh etc/resolv.conf etc/hostname etc/apt; do
  [ ! -e "$work/root/$path" ] || fail "the image has $path"
done
# An engine fills a new volume from the image.
cp -a "$work/root/var/lib/tollgate" "$work/state"

# The processes that this script starts end with it.
unshare --net --pid --fork --kill-child --mount-proc scripts/test-image.sh boot "$work"

step "the Dockerfile makes the same image"
# Without a registry, the base is made of Debian packages, with those that the Dockerfile installs.
# The stages before it build the release, which is in dist/.
mmdebstrap --quiet --variant=minbase --include=mmdebstrap,zstd bookworm "$work/base.tar" >/dev/null 2>"$work/log" ||
  { cat "$work/log"; fail "no Debian to build in"; }
base=$("${engine[@]}" from scratch)
"${engine[@]}" add --quiet "$base" "$work/base.tar" / >/dev/null
"${engine[@]}" commit --quiet "$base" docker.io/library/debian:bookworm-slim >/dev/null
"${engine[@]}" rm "$base" >/dev/null
sed '/^FROM rust/,/^COPY --from=compile/d; /^RUN apt-get/d' Dockerfile >"$work/Dockerfile"
"${engine[@]}" build --quiet --isolation chroot --pull-never --format docker --build-context dist=dist --tag built \
  --file "$work/Dockerfile" . >"$work/log" 2>&1 || { cat "$work/log"; fail "the Dockerfile does not build"; }
unpack built "$work/built"
"${engine[@]}" inspect --type image --format '{{.Config}}' built >"$work/config.built"
contents() { (cd "$1" && find . -printf '%P %y %m %U:%G %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
diff <(contents "$work/root") <(contents "$work/built") || fail "the files differ"
for part in user command health environment rest; do
  diff <(python3 scripts/image-config.py "$work/config" $part) <(python3 scripts/image-config.py "$work/config.built" $part) ||
    fail "the settings differ: $part"
done
printf '\ntest-image: all good\n'
