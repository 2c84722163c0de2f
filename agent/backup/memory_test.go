// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"

	"filippo.io/age"
)

// This test does not run in parallel, because it measures the memory of the whole process.
func TestLargeDatabaseIsSavedInLittleMemory(t *testing.T) { savesInLittleMemory(t, directory(t)) }

// savesInLittleMemory streams a database from a real etcd to a store, compressed and encrypted. Meanwhile it measures
// how much the memory of the process rises.
func savesInLittleMemory(t *testing.T, store Store) {
	t.Helper()
	const megabytes, most = 96, 64 << 20
	c := etcd(t)
	value := make([]byte, 1<<20)
	for i := range megabytes {
		_, _ = rand.Read(value) // never fails
		_, err := c.Put(t.Context(), fmt.Sprint("/large/", i), string(value))
		must(t, err)
	}
	key, err := age.GenerateX25519Identity()
	must(t, err)
	o := options(t)
	o.Recipients, err = ParseRecipients([]string{key.Recipient().String()})
	must(t, err)
	from := stream(t, c)

	var rest, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&rest)
	above, looks := uint64(0), 0
	o.Progress = func(int64) {
		if looks++; looks%64 != 0 { // each sample stops the world
			return
		}
		if runtime.ReadMemStats(&now); now.HeapInuse+now.StackInuse > rest.HeapInuse+rest.StackInuse {
			above = max(above, now.HeapInuse+now.StackInuse-rest.HeapInuse-rest.StackInuse)
		}
	}
	m, err := Save(t.Context(), store, from, o)
	must(t, err)
	t.Logf("%d MiB above rest, at most, in %d samples, for %d MiB", above>>20, looks/64, m.Size>>20)
	if above > most || looks < 64*100 || m.Size < megabytes<<20 {
		t.Errorf("%d MiB above rest in %d samples, the limit is %d MiB", above>>20, looks/64, most>>20)
	}
}
