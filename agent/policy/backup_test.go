// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

// backedUp returns the view of the standby in the cluster of fourMembers, with a snapshot taken an hour ago.
func backedUp() View {
	v := fourMembers()
	for i := range v.Hosts {
		v.Hosts[i].Manage, v.Hosts[i].Name = true, v.Hosts[i].ID[len("http://"):]
	}
	v.Self.PeerURL, v.Self.Mode = "http://n4", Manage
	v.Backup = Backup{
		Every: 6 * time.Hour, Spread: 20 * time.Minute, WindowOpen: true, HasSnapshot: true, Age: time.Hour,
	}
	return v
}

func TestTheHostWithTheLowestCostTakesADueSnapshot(t *testing.T) {
	t.Parallel()
	due := func(v *View) { v.Backup.Age = 5*time.Hour + 41*time.Minute }
	for name, c := range map[string]struct {
		change func(*View)
		take   bool
		text   string
	}{
		"not yet": {func(*View) {}, false, "n4 takes the next snapshot in 4h40m"},
		"due":     {due, true, "a snapshot is due, and n4 takes it"},
		"the first": {
			func(v *View) { v.Backup.HasSnapshot, v.Backup.Age = false, 0 }, true, "due, and n4 takes it",
		},
		"off": {func(v *View) { due(v); v.Backup.Every = 0 }, false, ""},
		"no window": {
			func(v *View) { due(v); v.Backup.WindowOpen = false }, false, "n4 waits for a window",
		},
		"paused": {func(v *View) { due(v); v.Pause = &Pause{} }, true, "due, and n4 takes it"},
		"elsewhere": {
			func(v *View) { due(v); v.Self.PeerURL = "http://n3" }, false, "due, and n4 takes it",
		},
		"its agent only observes": {func(v *View) { due(v); v.Hosts[3].Manage = false }, false, "due, and n3 takes it"},
		"without the standby": {func(v *View) {
			due(v)
			v.Cluster.Members, v.Self.PeerURL = v.Cluster.Members[:3], "http://n3"
		}, true, "due, and n3 takes it"},
		"observing":    {func(v *View) { due(v); v.Self.Mode = Observe }, false, "due, and n4 takes it"},
		"out of reach": {func(v *View) { due(v); v.Cluster.Reachable = false }, false, "cannot be reached"},
		"failed a moment ago": {func(v *View) {
			due(v)
			v.Backup.Failed = &BackupFailure{Age: time.Minute}
		}, false, "n4 takes the next snapshot in 9m"},
		"failed a while ago": {func(v *View) {
			due(v)
			v.Backup.Failed = &BackupFailure{Age: 11 * time.Minute}
		}, true, "due, and n4 takes it"},
		"taken with a clock that was a day ahead": {
			func(v *View) { v.Backup.Age = -24 * time.Hour }, true, "due, and n4 takes it",
		},
	} {
		v := backedUp()
		c.change(&v)
		got := noteBackup(v)
		if got.Take != c.take || !strings.Contains(got.Text, c.text) || got.Take && got.Member == 0 {
			t.Errorf("%s: %+v, want %q", name, got, c.text)
		}
		if decided := Decide(v).Notes.Backup; decided != got {
			t.Errorf("%s: the decision has %+v, want %+v", name, decided, got)
		}
	}
}

func TestAtMostOneHostTakesTheNextSnapshot(t *testing.T) {
	t.Parallel()
	v := backedUp()
	v.Backup.Age = 24 * time.Hour
	takers := 0
	for _, h := range v.Hosts {
		v.Self.PeerURL = h.PeerURL
		if noteBackup(v).Take {
			takers++
		}
	}
	if takers != 1 {
		t.Errorf("%d hosts take the next snapshot", takers)
	}
}

func TestAnOldOrFailedSnapshotIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		backup Backup
		want   map[ReasonCode]string
	}{
		"young": {Backup{Every: time.Hour, HasSnapshot: true, Age: 119 * time.Minute}, nil},
		"off":   {Backup{Age: 1000 * time.Hour}, nil},
		"old": {Backup{Every: time.Hour, HasSnapshot: true, Age: 190 * time.Minute}, map[ReasonCode]string{
			BackupOld: "the newest snapshot is more than 3h old; one is due every 1h",
		}},
		"none": {Backup{Every: time.Hour, Age: 2 * time.Hour}, map[ReasonCode]string{
			BackupOld: "there is no snapshot",
		}},
		"failed": {Backup{Failed: &BackupFailure{Host: "n4", Text: "no space left"}}, map[ReasonCode]string{
			BackupFailed: "on n4: no space left",
		}},
	} {
		got := caution(View{Self: Self{Drives: true}, Backup: c.backup}, nil)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, r := range got {
			if !strings.HasPrefix(r.Text, c.want[r.Code]) || c.want[r.Code] == "" {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}
