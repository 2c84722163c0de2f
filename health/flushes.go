// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// FlushesDisabled is the code of the check that the kernel flushes the write caches under etcd's data.
const FlushesDisabled Code = "FLUSHES_DISABLED"

// checkFlushes is the check that the configuration lets the kernel flush the write caches under etcd's data. Unlike the
// suspicion of checkDurability, its finding is certain, so it keeps a host from joining. It removes no voter.
//
// Its component is Machine and not Disk, because a wrong setting has no cause in common with other hosts: see
// [Code.Shared].
var checkFlushes = advice{
	name: "flushes", component: Machine, gates: Joins,
	source: "the mount options of the file systems of etcd's data (/proc/self/mountinfo), and queue/write_cache and " +
		"cache_type of the drives below them",
	limit: Limit{Of: "settings that disable flushes", Unit: "settings"},
	code:  FlushesDisabled,
	title: "Flushes are disabled for etcd's data.",
	meaning: "A power cut loses writes that etcd has confirmed. A member that forgets writes breaks the cluster's " +
		"guarantees. While the finding lasts, a host that is not a voter does not become one.",
	remedy: "remove nobarrier or barrier=0 from /etc/fstab, and remount ('mount -o remount,barrier DIR'); or write " +
		"'write back' to /sys/block/NAME/queue/write_cache, at every boot with a udev rule. If a battery or " +
		"capacitors protect the cache, set disk.protectedCache: true and reload quorumd",
	measure: lists(0, time.Minute, listed{
		bad:  "flushes are disabled for etcd's data",
		well: "no setting disables flushes for etcd's data",
		missing: func(in Input) string {
			if in.Protected {
				return "disk.protectedCache is set"
			}
			return in.missing(place.absent)
		},
		partly: func(in Input) []string { return in.partly(place.absent) },
		look: func(in Input, _ bool) (wrong []string) {
			for _, p := range in.places() {
				wrong = append(wrong, p.unflushed(in.Hardware.Drives.All)...)
			}
			return wrong
		},
	}),
}

// unflushed lists the settings that disable flushes. A drive does not need flushes if its own test shows that its
// capacitors work.
func (p place) unflushed(drives []Drive) (wrong []string) {
	leaves, protected := 0, 0
	for _, leaf := range p.Chain {
		if !leaf.Leaf() {
			continue
		}
		leaves++
		if slices.ContainsFunc(drives, func(d Drive) bool { return d.is(leaf) && d.protected() }) {
			protected++
			continue
		}
		if leaf.Cache == "write through" && strings.HasPrefix(leaf.OwnCache, "write back") {
			wrong = append(wrong, leaf.Name+" has a write cache that the kernel does not flush (queue/write_cache)")
		}
	}
	if p.FileSystem.Unsafe != "" && (leaves == 0 || protected < leaves) {
		wrong = append(wrong, fmt.Sprintf("the %s file system of %s is mounted with %s, which disables flushes",
			p.FileSystem.Type, p.of, p.FileSystem.Unsafe))
	}
	return wrong
}

// protected reports whether the drive's own test shows that its capacitors work.
func (d Drive) protected() bool { return d.Absent == "" && d.Capacitor != nil && !d.Capacitor.failed() }
