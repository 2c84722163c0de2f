// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestDisabledFlushesPreventAJoinUnlessTheCacheIsProtected(t *testing.T) {
	t.Parallel()
	noFlush := func(b *bench) { b.devices.FileSystem.Unsafe = "nobarrier" }
	forced := func(b *bench) { b.devices.Chain[1].Cache, b.devices.Chain[1].OwnCache = "write through", "write back" }
	tested := func(names ...string) func(*bench) {
		return func(b *bench) {
			b.hardware.Drives.All = nil
			for _, name := range names {
				d := Drive{Name: name, Capacitor: &CapacitorTest{90, 10}}
				b.hardware.Drives.All = append(b.hardware.Drives.All, d)
			}
		}
	}
	unnamed := func(b *bench) { b.devices.Chain = b.devices.Chain[:1] }
	configured := func(b *bench) { b.protected = true }
	const mount = "the ext4 file system of etcd's data is mounted with nobarrier, which disables flushes"
	const drive = "sda has a write cache that the kernel does not flush (queue/write_cache)"
	for what, c := range map[string]struct {
		spoil []func(*bench)
		want  string
	}{
		"nobarrier": {[]func(*bench){noFlush}, mount},
		"a drive with a cache, forced to write through": {[]func(*bench){forced}, drive},
		"a drive without a cache": {
			[]func(*bench){func(b *bench) {
				b.devices.Chain[1].Cache, b.devices.Chain[1].OwnCache = "write through", "write through"
			}}, "",
		},
		"both":                                  {[]func(*bench){noFlush, forced}, drive + "; " + mount},
		"capacitors that pass their test":       {[]func(*bench){forced, tested("sda")}, ""},
		"capacitors of both drives":             {[]func(*bench){noFlush, tested("sda", "sdb")}, ""},
		"capacitors of only one drive":          {[]func(*bench){noFlush, tested("sda")}, mount},
		"a drive that the kernel does not name": {[]func(*bench){noFlush, unnamed}, mount},
		"capacitors of a drive elsewhere":       {[]func(*bench){forced, tested("sdz")}, drive},
		"disk.protectedCache is set":            {[]func(*bench){noFlush, forced, configured}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t)
			for _, spoil := range c.spoil {
				spoil(b)
			}
			b.each(time.Second, ms)
			if got := b.found(FlushesDisabled); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			gates := Nothing
			if c.want != "" {
				gates = Joins
			}
			if b.result.Gates != gates {
				t.Errorf("it gates %v", b.result.Gates.Names())
			}
			if FlushesDisabled.Shared() {
				t.Error("it counts as a cause that several hosts share, so it would block the replacement of a voter")
			}
		})
	}
}
