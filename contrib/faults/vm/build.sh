#!/bin/sh
# Copyright The quorumd Authors
# SPDX-License-Identifier: Apache-2.0
#
# build.sh DIR: creates DIR/vmlinuz and DIR/initrd, the virtual machine for faults that need their own kernel: Debian
# with the tools that inject them, without quorumd. It installs nothing on this machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
rm -rf root kernel kept ./*.deb
tools=kmod,iproute2,mdadm,dmsetup,e2fsprogs,mount,util-linux,procps,smartmontools,cpio
mmdebstrap --quiet --variant=minbase --include=$tools --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm root
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
apt-get -q -o APT::Sandbox::User=root download "$kernel"
dpkg -x "$kernel"_*.deb kernel
version=${kernel#linux-image-}
cp "kernel/boot/vmlinuz-$version" vmlinuz

# Keep only the listed modules and their dependencies.
mkdir -p root/lib/modules
cp -a "kernel/lib/modules/$version" root/lib/modules/
chroot root depmod "$version"
wanted=$(for module in $(cat "$here/modules"); do
  chroot root modprobe -S "$version" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | sort -u)
mkdir kept
for file in $wanted; do
  mkdir -p "kept$(dirname "$file")"
  cp "root$file" "kept$file"
done
rm -rf root/lib/modules/*
cp -a kept/lib/modules/. root/lib/modules/
cp kernel/lib/modules/"$version"/modules.order kernel/lib/modules/"$version"/modules.builtin \
  kernel/lib/modules/"$version"/modules.builtin.modinfo "root/lib/modules/$version/"
chroot root depmod "$version"
cp "$here/init" "$here/modules" root/
chmod +x root/init
rm -rf kept kernel root/var/cache/apt/* root/var/lib/apt/lists/*
chroot root sh -c 'find . -xdev | cpio -o -H newc --quiet' >initrd.new
rm -rf root
mv initrd.new initrd
