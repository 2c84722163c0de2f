// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// still returns an agent of v1 whose loop does not run. Its etcd is empty.
func still(t *testing.T) *Agent {
	t.Helper()
	f := &fleet{t: t, etcd: newFleetEtcd(), start: time.Now()}
	h := &fleetHost{f: f, name: "v1", files: map[string][]byte{}}
	c, err := config.Parse("test", fmt.Appendf(nil, fleetConfig, "v1", "rack", 0))
	must(t, err)
	a, err := New(Options{
		Config: c, Instance: "i", BootID: "b", Version: "test",
		Etcd: f.etcd.of("v1"), Unit: h, Probe: (*fleetProbe)(h), Data: (*fleetData)(h), Files: (*fleetFiles)(h),
		Sources: observe.Sources{EtcdVersion: func(context.Context) (string, error) { return "3.6.16", nil }},
		Now:     f.now, Monotonic: f.now, Wall: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return a
}

// Whatever etcd contains, the cluster counts as reachable, the policy decides, and clients can decode the status.
func FuzzAnyContentOfEtcdCanBeShown(f *testing.F) {
	for _, value := range strange() {
		f.Add([]byte(value), []byte(value))
	}
	f.Add([]byte(`{"version":1,"kind":"cycle","host":"id-v1","phase":"ready","started":"9999-12-31T23:59:59Z","until":"0001-01-01T00:00:01Z","clock":-9223372036854775808}`),
		[]byte(`{"version":1,"id":"id-v2","name":"v1","health":"OK","fsyncP99":1e9,"role":"voter","mode":"manage","turn":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":1,"id":"x","state":"running","work":"reboot","hosts":[{"id":"id-v1","state":"waiting","seconds":1e9}],"started":"2026-03-01T12:00:00-23:59"}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, b, host []byte) {
		a := still(t)
		keys := a.keys
		for key, value := range map[string][]byte{
			keys.Op(): b, keys.Pause(): b, keys.Rollout(): b, keys.Lock(): b, keys.Queue(): b, keys.Ended(): b,
			keys.Release("id-v2"): b, keys.Size(): b, keys.Retired("id-v2"): b,
			keys.Host("id-v1"): host, keys.Host("id-v2"): host, keys.Host("x"): b, keys.HistoryLine(1, "x", 1): b,
		} {
			_, err := a.opt.Etcd.Txn(t.Context(), nil, clientv3.OpPut(key, string(value)))
			must(t, err)
		}
		r := a.observer.Look(t.Context(), round.Input{Number: 1})
		a.observer.Confirm(t.Context(), r)
		a.checkLock(t.Context(), r)
		a.decide(r)
		a.keeper.Decided(t.Context(), r)
		if !r.View.Cluster.Reachable {
			t.Fatalf("the cluster counts as not reachable: %s", r.View.Cluster.Error)
		}
		a.publisher.Show(r)
		sent := a.Status()
		text, err := json.Marshal(sent)
		must(t, err)
		var got control.Status
		must(t, json.Unmarshal(text, &got))
		again, err := json.Marshal(got)
		if err != nil || !reflect.DeepEqual(text, again) {
			t.Errorf("sent %s\ngot %s, %v", text, again, err)
		}
		if r.Op != nil {
			if _, err := record.Encode(*r.Op); err != nil {
				t.Errorf("the operation was read and cannot be written: %v", err)
			}
		}
	})
}
