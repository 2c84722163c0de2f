// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tools returns the programs that a lab uses, by Debian package.
func tools() map[string][]string {
	return map[string][]string{
		"systemd-container": {"systemd-nspawn"},
		"mmdebstrap":        {"mmdebstrap"},
		"nftables":          {"nft"},
		"iproute2":          {"ip"},
		"util-linux":        {"nsenter"},
		"mount":             {"mount", "umount"},
		"e2fsprogs":         {"mkfs.ext4"},
	}
}

// Tools installs the programs that a lab needs and that this machine lacks.
func Tools(ctx context.Context) error {
	var missing []string
	for name, programs := range tools() {
		for _, program := range programs {
			if _, err := exec.LookPath(program); err != nil {
				missing = append(missing, name)
				break
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := machine(ctx, "", "apt-get", "update", "-q"); err != nil {
		return fmt.Errorf("cannot install %v: %w", missing, err)
	}
	install := []string{
		"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-q", "-y",
		"--no-install-recommends",
	}
	if _, err := machine(ctx, "", append(install, missing...)...); err != nil {
		return fmt.Errorf("cannot install %v: %w", missing, err)
	}
	return nil
}

// Release is a Debian release that hosts can have.
type Release string

// The releases. The default is Debian 12, the oldest release that quorumd's packages support fully. In Debian 11 polkit
// is too old for the rules in quorumd's package; everything else has to work there.
const (
	Debian11 Release = "bullseye"
	Debian12 Release = "bookworm"
	Debian13 Release = "trixie"
)

// packages returns the packages of every host: those of a minimal server and the distribution's etcd.
func (r Release) packages() string {
	polkit := "polkitd"
	if r == Debian11 {
		polkit = "policykit-1"
	}
	return "systemd,systemd-sysv,dbus," + polkit + ",etcd-server,etcd-client,iproute2,procps,less"
}

// customize adapts the root file system for use by many hosts: each host gets its own identity at its first boot, no
// background job downloads or cleans up, and the journal survives a reboot. etcd is installed but not started.
const customize = `set -e; cd "$1"
rm -f etc/machine-id var/lib/dbus/machine-id etc/hostname etc/resolv.conf
: >etc/machine-id
mkdir -p var/log/journal
rm -f etc/systemd/system/multi-user.target.wants/etcd.service etc/systemd/system/etcd2.service
for unit in getty@.service console-getty.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
  e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-pstore.service; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done`

// Root returns the read-only root file system that all hosts of a release share. If it is not in the cache, Root
// creates it, which takes half a minute.
func (r Release) Root(ctx context.Context, cache string) (string, error) {
	sum := sha256.Sum256([]byte(string(r) + "\n" + r.packages() + "\n" + customize))
	path := filepath.Join(cache, fmt.Sprintf("root-%s-%x", r, sum[:4]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	temp := path + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return "", err
	}
	hook := "sh -c '" + strings.ReplaceAll(customize, "'", `'\''`) + `' hook "$1"`
	_, err := machine(ctx, "", "mmdebstrap", "--quiet", "--variant=minbase", "--include="+r.packages(),
		"--customize-hook="+hook, string(r), temp)
	if err != nil {
		return "", fmt.Errorf("cannot create the hosts' root file system: %w", err)
	}
	return path, os.Rename(temp, path)
}
