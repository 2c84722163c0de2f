// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// upgrading returns backedUp in a rollout to a different etcd version that is about to reach n4. The newest snapshot is
// five hours old.
func upgrading() View {
	v := backedUp()
	v.HostsFresh, v.Self.ID, v.Backup.HasStore, v.Backup.Age = true, v.Hosts[3].ID, true, 5*time.Hour
	v.Op, v.Asked = nil, nil
	v.Rollout = &Rollout{
		ID: "r", Work: WorkRestart, Runs: true, Waiting: []string{v.Self.ID}, Due: true, Upgrade: "3.7.3",
		Began: time.Minute,
	}
	return v
}

func TestAnEtcdUpgradeRolloutWaitsForASnapshot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*View)
		waits  string
		take   bool
	}{
		"an old one": {
			func(*View) {}, "n4 takes a snapshot before etcd on n4 is upgraded to 3.7.3", true,
		},
		"none at all":               {func(v *View) { v.Backup.HasSnapshot = false }, "n4 takes a snapshot", true},
		"no schedule is configured": {func(v *View) { v.Backup.Every = 0 }, "n4 takes a snapshot", true},
		"no window is open":         {func(v *View) { v.Backup.WindowOpen = false }, "n4 takes a snapshot", true},
		"a snapshot from just now":  {func(v *View) { v.Backup.Age = 10 * time.Second }, "", false},
		"a snapshot from an hour before the rollout began": {func(v *View) {
			v.Backup.Age, v.Rollout.Began = 5*time.Hour, 4*time.Hour
		}, "", false},
		"a snapshot from five hours before the rollout was resumed": {func(v *View) {
			v.Backup.Age, v.Rollout.Began = 9*time.Hour, 4*time.Hour
		}, "n4 takes a snapshot", true},
		"the rollout is not an upgrade":   {func(v *View) { v.Rollout.Upgrade = "" }, "", false},
		"an operator waived the snapshot": {func(v *View) { v.Rollout.WithoutSnapshot = true }, "", false},
		"no host has a store":             {func(v *View) { v.Backup.HasStore, v.Backup.Every = false, 0 }, "", false},
		"paused":                          {func(v *View) { v.Rollout.Runs = false }, "", false},
		"failed a moment ago": {func(v *View) {
			v.Backup.Failed = &BackupFailure{Host: "n4", Text: "no space", Age: time.Minute}
		}, "a snapshot is needed before etcd on n4 is upgraded to 3.7.3, but n4 failed to save it: no space; n4 " +
			"tries again in 9m", false},
		"failed a while ago, and no schedule is configured": {func(v *View) {
			v.Backup.Every, v.Backup.Failed = 0, &BackupFailure{Host: "n4", Age: time.Hour}
		}, "a snapshot is needed before etcd on n4 is upgraded to 3.7.3, but n4 failed to save it", true},
		"no host can take one": {func(v *View) {
			for i := range v.Hosts {
				v.Hosts[i].Manage = v.Hosts[i].ID == v.Self.ID
			}
			v.Cluster.Members[3].Live = false
		}, "a snapshot is needed before", false},
		"the best host has no store": {func(v *View) {
			v.Hosts[3].Stores = false
		}, "n3 takes a snapshot before etcd on n4 is upgraded to 3.7.3", false},
		"only this host has a store": {func(v *View) {
			for i := range v.Hosts {
				v.Hosts[i].Stores = false
			}
		}, "a snapshot is needed before etcd on n4 is upgraded to 3.7.3, but no host can take one: no suitable " +
			"host in mode manage reports that backup.store is set", false},
	} {
		v := upgrading()
		c.change(&v)
		text, waits := snapshotFirst(v)
		if waits != (c.waits != "") || !strings.HasPrefix(text, c.waits) {
			t.Errorf("%s: %q, want %q", name, text, c.waits)
		}
		turn := rolloutTurn(v).Change
		if waits && turn != RequestStays || !waits && v.Rollout.Runs && turn != RequestTurn {
			t.Errorf("%s: the change is %v", name, turn)
		}
		if note := noteBackup(v); note.Take != c.take {
			t.Errorf("%s: %+v, want %t", name, note, c.take)
		}
	}
}

func TestAHealthyVoterIsRemovedOnlyAfterASnapshot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*View, *Removal)
		want   string
	}{
		"healthy": {func(*View, *Removal) {}, "the newest snapshot is 5h old"},
		"none at all": {
			func(v *View, _ *Removal) { v.Backup.HasSnapshot = false }, "there is no snapshot",
		},
		"a snapshot from just now":              {func(v *View, _ *Removal) { v.Backup.Age = time.Minute }, ""},
		"a snapshot that is just recent enough": {func(v *View, _ *Removal) { v.Backup.Age = freshFor }, ""},
		"a snapshot that is just too old": {
			func(v *View, _ *Removal) { v.Backup.Age = freshFor + 1 }, "the newest snapshot is 1h old; the limit is 1h",
		},
		"no host has a store": {func(v *View, _ *Removal) { v.Backup.HasStore = false }, ""},
		"unhealthy":           {func(v *View, _ *Removal) { v.Hosts[1].Health = health.Slow }, ""},
		"lost":                {func(v *View, _ *Removal) { v.Cluster.Members[1].Live = false }, ""},
		"the request does not allow a live voter": {func(_ *View, r *Removal) { r.Live = false }, ""},
		"a learner": {func(v *View, r *Removal) { r.MemberID = v.Cluster.Members[3].ID }, ""},
	} {
		v := upgrading()
		r := Removal{MemberID: v.Cluster.Members[1].ID, Live: true}
		c.change(&v, &r)
		if got, wants := removalWants(v, r); wants != (c.want != "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheReasonNamesWhatARolloutWaitsFor(t *testing.T) {
	t.Parallel()
	reported := func(v View) bool {
		for _, r := range Decide(v).Reasons {
			if r.Code == SnapshotFirst {
				return true
			}
		}
		return false
	}
	v := upgrading()
	if !reported(v) {
		t.Errorf("%+v", Decide(v).Reasons)
	}
	v.Backup.Age = 0
	if reported(v) {
		t.Errorf("with a recent snapshot: %+v", Decide(v).Reasons)
	}
}
