// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// strange returns values that no agent writes, keyed by what is wrong with them.
func strange() map[string]string {
	return map[string]string{
		"an impossible time zone": `{"version":1,"kind":"cycle","host":"id-v1","started":"2026-03-01T12:00:00+24:00",` +
			`"since":"2026-03-01T12:00:00+24:00"}`,
		"a text that grows": `{"version":1,"reason":"` + strings.Repeat(`\u0000`, 9000) + `","name":"` +
			strings.Repeat("\u2028", 9000) + `"}`,
		"over the bound":  `{"version":1,"x":"` + strings.Repeat("x", 200<<10) + `"}`,
		"deep":            `{"version":1,"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"NULs":            "\x00\x00\x00",
		"empty":           "",
		"another version": `{"version":2}`,
		"wrong types":     `{"version":1,"host":7,"hosts":"all","id":[],"reason":{}}`,
	}
}

// tells returns what a host reports about an unreadable key, or "".
func (f *fleet) tells(name, key string) string {
	f.t.Helper()
	s := f.hosts[name].agent.Status()
	if _, err := json.Marshal(s); err != nil {
		f.t.Errorf("the status of %s cannot be shown: %v", name, err)
	}
	if !s.Cluster.Reachable {
		f.t.Errorf("%s reports the cluster as not reachable: %s", name, s.Cluster.Error)
	}
	for _, reason := range s.Reasons {
		if reason.Code == string(policy.RecordUnreadable) && strings.Contains(reason.Text, key) {
			return reason.Text
		}
	}
	return ""
}

func TestAnUnreadableRecordIsReportedByEveryHostAndCanBeDeleted(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys, v1 := record.KeysFor("test"), f.hosts["v1"].agent
		for what, value := range strange() {
			for key, remedy := range map[string]func() error{
				keys.Op(): func() error {
					return v1.ReleaseOp(t.Context(), control.ReleaseRequest{Force: true, Reason: "garbage"}, "root")
				},
				keys.Pause(): func() error { return v1.Resume(t.Context(), "root") },
				keys.Rollout(): func() error {
					_, err := v1.SetRollout(t.Context(), record.RolloutAborted, "root")
					return err
				},
			} {
				f.put(key, value)
				f.pass(10 * time.Second)
				for name := range f.hosts {
					if text := f.tells(name, key); text == "" || !strings.Contains(text, "quorumctl ") {
						t.Errorf("%s in %s: %s reports %q", what, key, name, text)
					}
				}
				if err := remedy(); err != nil {
					t.Errorf("%s in %s cannot be deleted: %v", what, key, err)
				}
				f.pass(10 * time.Second)
				if f.etcd.has(key) || f.tells("v1", key) != "" || f.tells("s0000", key) != "" {
					t.Errorf("%s in %s: it is still reported after it was deleted", what, key)
				}
			}
		}
	})
}

// has reports whether a key exists.
func (e *fleetEtcd) has(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.store.Get(key) != nil
}

func TestNothingBeginsWhileTheOperationOrPauseIsUnreadable(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for _, key := range []string{keys.Op(), keys.Pause()} {
			f.put(key, "garbage")
			f.pass(5 * time.Second)
			f.ask("s0000")
			f.pass(10 * time.Minute)
			if f.etcd.get(keys.Op()) != "" && f.etcd.get(keys.Op()) != "garbage" ||
				f.state("s0000") != policy.RequestWaiting {
				t.Errorf("%s cannot be read, and s0000 is %s with the operation %s", key, f.state("s0000"),
					f.etcd.get(keys.Op()))
			}
			must(t, f.hosts["v1"].agent.deleteFor(t, key))
			f.until(5*time.Minute, "s0000 is safe to touch", func() bool {
				return f.state("s0000") == policy.RequestSafe
			})
			f.over("s0000")
			f.until(5*time.Minute, "it is over", func() bool { return f.state("s0000") == "" })
		}
	})
}

// deleteFor deletes a key as the operator's command does.
func (a *Agent) deleteFor(t *testing.T, key string) error {
	if key == a.keys.Pause() {
		return a.Resume(t.Context(), "root")
	}
	return a.ReleaseOp(t.Context(), control.ReleaseRequest{Force: true, Reason: "garbage"}, "root")
}

func TestAnUnreadableOperationDoesNotReleaseItsHost(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.takeDown("s0000")
		f.put(record.KeysFor("test").Op(), `{"version":9}`)
		f.pass(5 * time.Minute)
		if k, _ := f.hosts["s0000"].agent.files.Asked(); k == nil {
			t.Error("its request was dropped")
		}
	})
}

func TestAnUnreadableHostRecordIsReportedAndOverwrittenByItsAgent(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for what, value := range strange() {
			f.put(keys.Host("id-unknown"), value)
			f.pass(10 * time.Second)
			if text := f.tells("v1", keys.Host("id-unknown")); !strings.Contains(text, "etcdctl del ") {
				t.Errorf("%s: v1 reports %q", what, text)
			}
			if what == "another version" {
				continue
			}
			f.put(keys.Host("id-v2"), value)
			f.pass(10 * time.Second)
			if h, err := record.Decode[record.Host]([]byte(f.etcd.get(keys.Host("id-v2")))); err != nil ||
				h.Name != "v2" {
				t.Errorf("%s: after a round of its agent the record of v2 is %+v, %v", what, h, err)
			}
		}
		f.put(keys.Host("id-unknown"), f.etcd.get(keys.Host("id-v3")))
		f.pass(10 * time.Second)
		text := f.tells("v1", keys.Host("id-unknown"))
		if !strings.Contains(text, `it holds the record of host "id-v3"`) {
			t.Errorf("about a record under another host's key v1 reports %q", text)
		}
		_, err := f.hosts["v1"].agent.StartRollout(t.Context(),
			control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"}, "root")
		if refused, is := err.(*control.Error); !is || refused.Code != string(policy.RecordUnreadable) {
			t.Errorf("a rollout of all hosts including an unknown one: %v", err)
		}
	})
}
