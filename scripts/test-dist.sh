#!/usr/bin/env bash
# Installs the package of dist/ in a separate Debian 12 (a folder, entered by chroot), as root. It
# tests the first start with the unit's command, the first request, the upgrade to a newer package
# with existing data, removal, and purge. Then it unpacks the archive and starts that program.
# `make test-dist` builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.tools/bin:$PATH"
. scripts/gateway-client.sh
[ "$(id -u)" = 0 ] || { echo "test-dist: needs root, for chroot" >&2; exit 1; }

root=$(mktemp -d)
pids=()
leave() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  umount "$root/proc" 2>/dev/null || true
  # Stop if a mount could not be undone: the removal would go into it.
  rm -rf --one-file-system "$root"
}
trap leave EXIT

step() { printf '\n==> %s\n' "$*"; }
fail() { echo "test-dist: $*" >&2; exit 1; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# background <log> <command…>: starts it and appends its process id to the list.
background() {
  local log=$1
  shift
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" >"$root/$log" 2>&1 &
  pids+=($!)
}
# As the unit does: the same user, folder and environment.
readonly SERVICE=(setpriv --reuid tollgate --regid tollgate --clear-groups env TOLLGATE_PRICES_SYNC=off TOLLGATE_DATA_DIR=/var/lib/tollgate)
readonly COMMAND=(tollgate --config /etc/tollgate/tollgate.yaml)

start() {
  inside install -d -o tollgate -g tollgate -m 0700 /var/lib/tollgate
  # The same command as in the package's unit: change both together.
  grep -qx "ExecStart=/usr/bin/${COMMAND[*]} serve" "$root/lib/systemd/system/tollgate.service" || fail "another ExecStart"
  ! inside "${SERVICE[@]}" "${COMMAND[@]}" health >/dev/null 2>&1 || fail "another gateway runs on this machine"
  background log "${SERVICE[@]}" "${COMMAND[@]}" serve
  for _ in $(seq 100); do
    inside "${SERVICE[@]}" "${COMMAND[@]}" health >/dev/null 2>&1 && return
    sleep 0.1
  done
  cat "$root/log"
  fail "it did not get ready"
}

stop() {
  kill -TERM "${pids[-1]}"
  wait "${pids[-1]}" || fail "it did not stop well"
  unset 'pids[-1]'
}

step "Debian 12"
mmdebstrap --variant=apt --include=systemd,adduser,ca-certificates,util-linux bookworm "$root" >/dev/null 2>"$root.log" ||
  { cat "$root.log"; fail "no Debian to install in"; }
rm -f "$root.log"
mount --bind /proc "$root/proc" 2>/dev/null || mount -t proc proc "$root/proc" 2>/dev/null || true
package=$(echo dist/tollgate_*.deb)
cp "$package" "$root/tollgate.deb"

step install
inside apt-get install --yes --quiet=2 --no-install-recommends ./tollgate.deb >/dev/null
inside tollgate --version
# This Debian has no man program.
faults=$(inside systemd-analyze verify /lib/systemd/system/tollgate.service 2>&1 | grep -v "man tollgate" || true)
[ -z "$faults" ] || fail "the unit has faults: $faults"
inside test -f /usr/share/man/man1/tollgate.1.gz -a -f /usr/share/bash-completion/completions/tollgate || fail "files are missing"

step "first start, first request"
start
token=$(cat "$root/var/lib/tollgate/admin.token")
gateway=${pids[-1]}
unset 'pids[-1]'
background mock.log tollgate mock --addr 127.0.0.1:9177
pids+=("$gateway")
first_user
[ "$(request "$key" "$root/answer")" = 200 ] || { cat "$root/answer"; fail "the first request failed"; }
[ "$(stat -c %a "$root/var/lib/tollgate/tollgate.db")" = 600 ] || fail "others can read the database"

step "upgrade to a newer package"
echo '# kept by the upgrade' >>"$root/etc/tollgate/tollgate.yaml"
mkdir "$root/newer"
dpkg-deb --raw-extract "$package" "$root/newer/package"
sed -i 's/^Version: .*/&+newer1/' "$root/newer/package/DEBIAN/control"
dpkg-deb --root-owner-group --build "$root/newer/package" "$root/newer.deb" >/dev/null
stop
inside dpkg --install /newer.deb >/dev/null
grep -q 'kept by the upgrade' "$root/etc/tollgate/tollgate.yaml" || fail "the upgrade replaced the configuration"
inside dpkg-query --show --showformat '${Version}\n' tollgate | grep -q newer1 || fail "it was not upgraded"
start
[ "$(request "$key" "$root/answer")" = 200 ] || fail "the key does not work after the upgrade"
recorded 2
stop

step "remove, and purge"
inside dpkg --remove tollgate >/dev/null
[ ! -e "$root/usr/bin/tollgate" ] || fail "the program is still there"
[ -e "$root/var/lib/tollgate/tollgate.db" ] && [ -e "$root/etc/tollgate/tollgate.yaml" ] || fail "removal took data"
inside dpkg --purge tollgate >/dev/null 2>&1
[ ! -e "$root/var/lib/tollgate" ] && [ ! -e "$root/etc/tollgate" ] || fail "purge left data"
! inside getent passwd tollgate >/dev/null || fail "purge left the user"

step "the archive"
mkdir "$root/archive"
tar --directory "$root/archive" --use-compress-program=unzstd -xf dist/tollgate-*.tar.zst
folder=$(cd "$root/archive" && echo tollgate-*)
inside "/archive/$folder/tollgate" --version
background log env TOLLGATE_PRICES_SYNC=off TOLLGATE_DATA_DIR=/archive/data "/archive/$folder/tollgate" --config "/archive/$folder/tollgate.yaml" serve
for _ in $(seq 100); do inside "/archive/$folder/tollgate" health >/dev/null 2>&1 && ready=yes && break || sleep 0.1; done
[ "${ready:-}" = yes ] || { cat "$root/log"; fail "the archive's program did not get ready"; }
stop
printf '\ntest-dist: all good\n'
