// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

var oversized = flag.Int("cluster.oversized", 40, "number of values of 1.4 MB to write")

// put writes a value, with retries: on a busy disk a large one may take longer than one call.
func put(t *testing.T, c *cluster.Client, key, value string) {
	t.Helper()
	testbed.Eventually(t, patience, key+" is written", func() bool {
		_, err := c.Txn(within(t), nil, clientv3.OpPut(key, value))
		return err == nil
	})
}

// peak returns the maximum size of the heap while do runs.
func peak(do func()) uint64 {
	runtime.GC()
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(stop)
	<-done
	return most.Load()
}

func TestOversizedValuesAreSkippedInBoundedMemoryAndTheRestIsRead(t *testing.T) {
	c := connectWith(t, cluster.Options{
		Endpoints: testbed.StartCluster(t, 1, quick()).Endpoints(), CallTimeout: 10 * time.Second, // megabytes are read
	})
	members(t, c)
	for i := range 100 {
		put(t, c, fmt.Sprintf("/q/hosts/h%03d", 4*i), "a host")
	}
	big := strings.Repeat("x", 1_400_000)
	for i := range *oversized {
		put(t, c, fmt.Sprintf("/q/hosts/h%03d-%03d", i%2, i), big)
	}
	put(t, c, "/q/lock", big)
	spans := []cluster.Span{{Start: "/q/lock"}, {Start: "/q/op"}, {Start: "/q/hosts/", End: "/q/lock"}}
	read := func() (good, bad int, rest string) {
		found, err := c.Read(within(t), spans...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found.Pairs {
			if p.Oversized > 0 && p.Value == nil {
				bad++
			} else if string(p.Value) == "a host" {
				good++
			}
		}
		return good, bad, found.Rest
	}
	reads, good, bad, rest := 0, 0, 0, "/"
	heap := peak(func() {
		for ; rest != "" && reads < 1000; reads++ {
			good, bad, rest = read()
		}
	})
	t.Logf("%d values of 1.4 MB: all keys are found after %d reads, with a heap of at most %d MiB", *oversized, reads,
		heap>>20)
	if good != 100 || bad != *oversized+1 || rest != "" {
		t.Errorf("found %d hosts and %d oversized values, up to %q", good, bad, rest)
	}
	if heap > 96<<20 {
		t.Errorf("the heap has grown to %d MiB", heap>>20)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	good, bad, rest = read()
	runtime.ReadMemStats(&after)
	if asked := after.TotalAlloc - before.TotalAlloc; asked > 8<<20 || good != 100 || bad != *oversized+1 ||
		rest != "" {
		t.Errorf("a further read took %d KiB, and found %d hosts and %d oversized values, up to %q", asked>>10, good,
			bad, rest)
	}
	put(t, c, "/q/lock", "mine")
	if _, err := c.Txn(within(t), nil, clientv3.OpDelete("/q/hosts/h000-",
		clientv3.WithRange("/q/hosts/h002"))); err != nil {
		t.Fatal(err)
	}
	if good, bad, rest = read(); good != 100 || bad != 0 || rest != "" {
		t.Errorf("after they were deleted %d hosts and %d oversized values are found, up to %q", good, bad, rest)
	}
}

func TestALargeFleetIsReadInPagesAtOneRevision(t *testing.T) {
	t.Parallel()
	c := connect(t, testbed.StartCluster(t, 1, quick()).Endpoints()...)
	members(t, c)
	for from := 0; from < 1000; from += 100 {
		var puts []clientv3.Op
		for i := range 100 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("/q/hosts/h%04d", from+i), "a host"))
		}
		if _, err := c.Txn(within(t), nil, puts...); err != nil {
			t.Fatal(err)
		}
	}
	put(t, c, "/q/op", "an operation")
	found, err := c.Read(within(t), cluster.Span{Start: "/q/op"}, cluster.Span{Start: "/q/hosts/", End: "/q/lock"},
		cluster.Span{Start: "/q/hosts/", End: "/q/lock", Count: true})
	if err != nil || len(found.Pairs) != 1001 || found.Counted != 1000 || found.Rest != "" || found.Revision == 0 {
		t.Fatalf("%d pairs, %d counted, up to %q at %d: %v", len(found.Pairs), found.Counted, found.Rest,
			found.Revision, err)
	}
	for i, p := range found.Pairs[1:] {
		if want := fmt.Sprintf("/q/hosts/h%04d", i); p.Key != want {
			t.Fatalf("pair %d is %s, want %s", i, p.Key, want)
		}
	}
}

func TestTheLastLinesOfALongHistoryAreReadWithoutTheOthers(t *testing.T) {
	t.Parallel()
	c := connectWith(t, cluster.Options{
		Endpoints: testbed.StartCluster(t, 1, quick()).Endpoints(), CallTimeout: patience,
	})
	members(t, c)
	big := strings.Repeat("x", 1_400_000)
	for i := range 300 {
		value := "a line"
		if i < 20 {
			value = big // a client that reads these has read too much
		}
		put(t, c, fmt.Sprintf("/q/history/%016x-h-%d", i+1, i), value)
	}
	found, err := c.ReadLast(t.Context(), "/q/history/", 20)
	if err != nil || len(found.Pairs) != 20 || found.Pairs[0].Key != fmt.Sprintf("/q/history/%016x-h-299", 300) ||
		found.Pairs[19].Key != fmt.Sprintf("/q/history/%016x-h-280", 281) {
		t.Errorf("got %d lines, %v", len(found.Pairs), err)
	}
	var all cluster.Range
	testbed.Eventually(
		t,
		patience,
		"all is read: each read skips the values that the previous one found too large",
		func() bool {
			all, err = c.ReadLast(t.Context(), "/q/history/", 1000)
			return err != nil || all.Rest == ""
		},
	)
	if err != nil || len(all.Pairs) != 300 || all.Pairs[299].Oversized == 0 {
		t.Errorf("%d pairs are read, up to %q: %v", len(all.Pairs), all.Rest, err)
	}
}
