#!/bin/sh
# Installs the Debian packages that are missing: packages.sh PACKAGE... Says what it does; does nothing when all are there.
set -eu
missing=
for p in "$@"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
if [ -z "$missing" ]; then
  echo "packages: all there"
  exit 0
fi
sudo=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "packages:$missing are missing; run as root or install sudo" >&2; exit 1; }
  sudo=sudo
fi
echo "packages: installing$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
