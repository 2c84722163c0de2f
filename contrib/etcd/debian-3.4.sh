#!/bin/sh
# Copyright The quorumd Authors
# SPDX-License-Identifier: Apache-2.0
#
# Downloads etcd 3.4 from Debian 12's etcd-server package to .cache/etcd/v3.4/etcd, without installing the package,
# which would start a cluster on this machine. 3.4 predates the Go modules from which the other versions are built.
# Runs as root or as any user; needs apt-get and dpkg with package lists (apt-get update).
set -eu

fail() { echo "cannot get etcd 3.4: $1" >&2; exit 1; }

for tool in apt-get dpkg; do
	command -v "$tool" >/dev/null || fail "no $tool on this machine; run this on Debian 12, or put an etcd 3.4 binary at .cache/etcd/v3.4/etcd"
done

out=$(cd "$(dirname "$0")/../.." && pwd)/.cache/etcd/v3.4
if "$out/etcd" --version 2>/dev/null | grep -q '^etcd Version: 3\.4\.'; then
	exit 0
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
user=$(id -un) # otherwise apt changes to a user that may not write here, and warns
apt-get -q -o APT::Sandbox::User="$user" download etcd-server >apt.log 2>&1 || {
	cat apt.log >&2
	fail "apt-get could not download etcd-server; run apt-get update as root and try again"
}
dpkg -x etcd-server_*.deb root || fail "dpkg could not unpack $(echo etcd-server_*.deb)"
version=$(root/usr/bin/etcd --version | sed -n 's/^etcd Version: //p')
case $version in
3.4.*) ;;
*) fail "this release packages etcd $version; run this on Debian 12" ;;
esac
mkdir -p "$out"
mv root/usr/bin/etcd "$out/etcd.new"
mv "$out/etcd.new" "$out/etcd"
