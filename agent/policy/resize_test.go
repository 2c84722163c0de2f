// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestAResizeIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	spares := func(n int) func(v *View) {
		return func(v *View) {
			for _, name := range []string{"n6", "n7", "n8", "n9"}[:n] {
				v.Hosts = append(v.Hosts, ready(name, RoleSpare))
			}
		}
	}
	for _, c := range []struct {
		name       string
		voters     int
		change     func(v *View)
		want, hint string // parts of the refusal's text and hint; want is empty if there is no refusal
	}{
		{"a smaller cluster", 3, nil, "", ""},
		{"the same size", 5, nil, "", ""},
		{"a larger cluster with enough hosts", 7, spares(2), "", ""},
		{"the largest with enough hosts", 9, spares(4), "", ""},
		{"one host is missing", 7, spares(1), "only 6 hosts have a voter or run quorumd in mode manage", ""},
		{"one of the spares only observes", 7, func(v *View) {
			spares(2)(v)
			v.Hosts[5].Manage = false
		}, "only 6 hosts have", "install quorumd on more hosts"},
		{"one of the hosts is a standby, and one joins", 7, func(v *View) {
			spares(2)(v)
			v.Hosts[5].Role, v.Hosts[6].Role = RoleStandby, RoleJoining
		}, "", ""},
		{"a larger cluster without enough hosts", 7, nil, "only 5 hosts have", "install quorumd on more hosts"},
		{"an even one", 4, nil, "4 voters tolerate only as many failures as 3", "choose 3 or 5"},
		{"a large even size", 8, nil, "8 voters tolerate only as many failures as 7", "choose 7 or 9"},
		{"none", 0, nil, "0 voters: the number must be between 1 and 9", "1, 3, 5 or 7"},
		{"too many", 11, nil, "11 voters: the number must be between 1 and 9", "1, 3, 5 or 7"},
		{"an even size above the largest", 10, nil, "10 voters: the number must be between 1 and 9", "1, 3, 5 or 7"},
		{"during a pause", 3, func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} }, "paused", "resume"},
		{"without a quorum", 3, func(v *View) { v.Cluster.Reachable = false }, "cannot be reached", "explain"},
		{"in observe mode", 3, func(v *View) { v.Self.Mode = Observe }, "only observes", "mode"},
		{
			"during a recovery", 3, func(v *View) { v.Recovery = &Recovery{} }, "a recovery plan is in progress",
			"quorumctl recover status",
		},
		{
			"to one voter without a store for snapshots", 1, nil,
			"one voter tolerates no failure, and no backup store is configured for a snapshot before voters leave",
			"configure backup.store, or use --without-snapshot",
		},
		{"to one voter with a store", 1, func(v *View) { v.Backup.HasStore = true }, "", ""},
		{
			"to one voter, which is the current size",
			1, func(v *View) { v.Cluster.Members = v.Cluster.Members[:1] }, "", "",
		},
		{"from two voters to one without a store", 1, func(v *View) {
			v.Cluster.Members = v.Cluster.Members[:2]
		}, "one voter tolerates no failure", "configure backup.store"},
	} {
		v := resized()
		if c.change != nil {
			c.change(&v)
		}
		switch r := AgainstResize(v, c.voters, false); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || !strings.Contains(r.Text, c.want) || r.Hint == "" ||
			!strings.Contains(r.Hint, c.hint)):
			t.Errorf("%s: %+v, want %q and the remedy %q", c.name, *r, c.want, c.hint)
		}
	}
	if r := AgainstResize(resized(), 1, true); r != nil {
		t.Errorf("to one voter with the snapshot waived: %+v", *r)
	}
}

func TestARecordedSizeReplacesTheConfiguredOne(t *testing.T) {
	t.Parallel()
	configured, five := Target{Voters: 3, Standbys: 1}, resized().Cluster
	for _, c := range []struct {
		name       string
		recorded   *Size
		unreadable bool
		want       Target
	}{
		{"without a record", nil, false, Target{Voters: 3, Standbys: 1, Configured: 3}},
		{"with one", &Size{Voters: 7}, false, Target{Voters: 7, Standbys: 1, Resized: true, Configured: 3}},
		{"an even one", &Size{Voters: 4}, false, Target{Voters: 5, Standbys: 1, Configured: 3}},
		{"a negative one", &Size{Voters: -1}, false, Target{Voters: 5, Standbys: 1, Configured: 3}},
		{"a huge one", &Size{Voters: 99}, false, Target{Voters: 5, Standbys: 1, Configured: 3}},
		{"the smallest", &Size{Voters: 1}, false, Target{Voters: 1, Standbys: 1, Resized: true, Configured: 3}},
		{"the largest", &Size{Voters: 9}, false, Target{Voters: 9, Standbys: 1, Resized: true, Configured: 3}},
		{"a larger one", &Size{Voters: 11}, false, Target{Voters: 5, Standbys: 1, Configured: 3}},
		{
			"a size that waives the snapshot", &Size{Voters: 1, WithoutSnapshot: true, For: time.Minute}, false,
			Target{
				Voters: 1, Standbys: 1, Resized: true, Configured: 3, WithoutSnapshot: true, ResizedFor: time.Minute,
			},
		},
		{"an unreadable one", nil, true, Target{Voters: 5, Standbys: 1, Configured: 3}},
		{
			"an earlier size whose record is now unreadable",
			&Size{Voters: 7}, true,
			Target{Voters: 5, Standbys: 1, Configured: 3},
		},
	} {
		if got := SizeOf(configured, c.recorded, c.unreadable, five); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	want := Target{Voters: 3, Standbys: 1, Configured: 3}
	if got := SizeOf(configured, nil, true, Cluster{}); got != want {
		t.Errorf("an unreadable record while no voter is known: %+v, want %+v", got, want)
	}
}

func TestAConfigurationThatDiffersFromTheSizeIsReported(t *testing.T) {
	t.Parallel()
	v := resized()
	v.Target.Voters = 5
	v.Target.Configured = 3
	if d := Decide(v); !hasCode(d.Reasons, SizeDiffers) || d.Step.Kind != StepNone {
		t.Errorf("%+v", d)
	}
	for name, change := range map[string]func(v *View){
		"they are equal":                              func(v *View) { v.Target.Configured = 5 },
		"no size is recorded":                         func(v *View) { v.Target.Resized = false },
		"the cluster cannot be reached":               func(v *View) { v.Cluster.Reachable = false },
		"the endpoints belong to a different cluster": func(v *View) { v.Cluster.ExpectedID = v.Cluster.ID + 1 },
	} {
		w := v
		change(&w)
		if text, differs := sizeDiffers(w); differs || text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
	want := "cluster.voters is 3 in this host's configuration, but the cluster has been resized to 5; the " +
		"configuration applies only to a new cluster"
	if text, _ := sizeDiffers(v); text != want {
		t.Errorf("the text is: %s", text)
	}
}
