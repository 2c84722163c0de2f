// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// drilling is a cluster of three voters with two spares, as the quicker of those sees it: n5. A restore was proven 10
// hours ago.
func drilling() View {
	v := backedUp()
	for _, name := range []string{"n5", "n6"} {
		v.Hosts = append(v.Hosts, Host{
			ID: name, Name: name, Role: RoleSpare, Manage: true, Health: health.OK, Drills: DrillReady,
			P99: map[string]time.Duration{"n5": time.Millisecond, "n6": 2 * time.Millisecond}[name],
		})
	}
	v.Self.ID, v.Self.PeerURL = "n5", "http://n5"
	v.Backup.Drill = Drill{Every: 24 * time.Hour, Proven: true, Age: 10 * time.Hour}
	return v
}

// spares gives the spares of that view.
func spares(v View) []Host { return v.Hosts[len(v.Hosts)-2:] }

func TestARestoreIsProvenWhenItIsDueByTheBestHostWithoutAMember(t *testing.T) {
	t.Parallel()
	due := func(v *View) { v.Backup.Drill.Age = 25 * time.Hour }
	failed := func(host string, age time.Duration) func(*View) {
		return func(v *View) {
			due(v)
			v.Backup.Drill.Failed = &BackupFailure{Host: host, Age: age}
		}
	}
	joins := func(host string) func(*View) {
		return func(v *View) {
			due(v)
			v.Op = &Op{Kind: KindJoin, Host: host}
		}
	}
	for name, c := range map[string]struct {
		change func(*View)
		run    bool
		text   string
	}{
		"not yet":                {func(*View) {}, false, "the next restore is proven in 14h, by n5"},
		"due":                    {due, true, "to be proven now, by n5"},
		"the first":              {func(v *View) { v.Backup.Drill.Proven = false }, true, "now, by n5"},
		"off":                    {func(v *View) { due(v); v.Backup.Drill.Every = 0 }, false, ""},
		"no window for snapshot": {func(v *View) { due(v); v.Backup.Open = false }, true, "now, by n5"},
		"paused":                 {func(v *View) { due(v); v.Pause = &Pause{} }, true, "now, by n5"},
		"observing":              {func(v *View) { due(v); v.Self.Mode = Observe }, false, "now, by n5"},
		"out of reach":           {func(v *View) { due(v); v.Cluster.Reachable = false }, false, "cannot be reached"},
		"nothing to prove":       {func(v *View) { due(v); v.Backup.Saved = false }, false, "there is no snapshot yet"},
		"asked for maintenance":  {func(v *View) { due(v); spares(*v)[0].Wants = "maintenance" }, false, "now, by n6"},
		"joining":                {joins("n5"), false, "due, and n6 waits: n5 is in an operation"},
		"another joins":          {joins("n6"), false, "due, and n5 waits: n6 is in an operation"},
		"a voter is dead": {func(v *View) {
			due(v)
			v.Cluster.Members[1].Live = false
		}, false, "does not answer"},
		"sick":             {func(v *View) { due(v); spares(*v)[0].Health = health.Slow }, false, "now, by n6"},
		"a member":         {func(v *View) { due(v); spares(*v)[0].Role = RoleStandby }, false, "now, by n6"},
		"it cannot":        {func(v *View) { due(v); spares(*v)[0].Drills = "" }, false, "now, by n6"},
		"it has no key":    {func(v *View) { due(v); spares(*v)[0].Drills = DrillSealed }, false, "now, by n6"},
		"it observes":      {func(v *View) { due(v); spares(*v)[0].Manage = false }, false, "now, by n6"},
		"failed there":     {failed("n5", 2*time.Hour), false, "now, by n6"},
		"failed elsewhere": {failed("n6", 2*time.Hour), true, "now, by n5"},
		"failed just now":  {failed("n6", time.Minute), false, "in 59m, by n5"},
		"no key anywhere": {func(v *View) {
			due(v)
			spares(*v)[0].Drills, spares(*v)[1].Drills = DrillSealed, DrillSealed
		}, false, "encrypted to recipients whose key no host without a member has"},
		"no spare": {func(v *View) { due(v); v.Hosts = v.Hosts[:4] }, false, "quorumctl snapshot drill does it"},
		"by a clock that was two days ahead": {func(v *View) {
			v.Backup.Drill.Age = -48 * time.Hour
		}, true, "now, by n5"},
	} {
		v := drilling()
		c.change(&v)
		if got := noteDrill(v); got.Run != c.run || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, want %q", name, got, c.text)
		}
	}
}

func TestADrillIsEndedOnAHostThatIsInAnOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op  *Op
		end string
	}{
		"nobody is in one":   {nil, ""},
		"another host is":    {&Op{Kind: KindJoin, Host: "n6"}, ""},
		"this one joins":     {&Op{Kind: KindJoin, Host: "n5"}, "this host is in an operation (join)"},
		"this one is cycled": {&Op{Kind: KindCycle, Host: "n5"}, "this host is in an operation (cycle)"},
	} {
		for _, every := range []time.Duration{0, 24 * time.Hour} { // one that a person has asked for, too
			v := drilling()
			v.Op, v.Backup.Drill.Every = c.op, every
			if n := noteDrill(v); n.End != c.end || n.End != "" && n.Run {
				t.Errorf("%s, every %s: %+v, want an end because %q", name, every, n, c.end)
			}
		}
	}
}

func TestOneHostAloneProvesARestore(t *testing.T) {
	t.Parallel()
	runs := 0
	for _, h := range drilling().Hosts {
		v := drilling()
		v.Backup.Drill.Proven, v.Self.ID, v.Self.PeerURL = false, h.ID, h.PeerURL
		if noteDrill(v).Run {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d hosts prove it", runs)
	}
}

func TestARestoreThatIsNotProvenIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*View)
		code   ReasonCode
		text   string
	}{
		"proven":           {func(*View) {}, "", ""},
		"late, not yet":    {func(v *View) { v.Backup.Drill.Age = 71 * time.Hour }, "", ""},
		"off":              {func(v *View) { v.Backup.Drill.Age, v.Backup.Drill.Every = 99*time.Hour, 0 }, "", ""},
		"sealed for years": {func(v *View) { v.Backup.Drill.Age = 9999 * time.Hour; seal(v) }, "", ""},
		"too late": {func(v *View) {
			v.Backup.Drill.Age = 75 * time.Hour
		}, RestoreUnproven, "no restore was proven for more than 3d, and there should be one every 1d"},
		"never": {func(v *View) {
			v.Backup.Drill.Proven, v.Backup.Drill.Age = false, 72*time.Hour
		}, RestoreUnproven, "no restore was ever proven"},
		"failed": {func(v *View) {
			v.Backup.Drill.Failed = &BackupFailure{Host: "n6", Text: "it is damaged"}
		}, RestoreFailed, "on n6: it is damaged"},
	} {
		v := drilling()
		c.change(&v)
		told := ""
		for _, r := range Decide(v).Reasons {
			if r.Code == RestoreUnproven || r.Code == RestoreFailed {
				told = string(r.Code) + " " + r.Text
			}
		}
		if want := string(c.code); !strings.HasPrefix(told, want) || want == "" && told != "" ||
			!strings.Contains(told, c.text) {
			t.Errorf("%s: %q, want %s %q", name, told, c.code, c.text)
		}
	}
}

// seal takes the key from both spares.
func seal(v *View) { spares(*v)[0].Drills, spares(*v)[1].Drills = DrillSealed, DrillSealed }

func TestAHostCanDrillWithAStoreAKeyAndAnEtcdThatKnowsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		etcd       string
		store, key bool
		want       DrillAbility
	}{
		"all": {"3.6.16", true, true, DrillReady}, "newer": {"3.7.3", true, true, DrillReady},
		"an older patch": {"3.6.2", true, true, DrillReady}, "older": {"3.5.31", true, true, ""},
		"no store": {"3.6.16", false, true, ""}, "no key": {"3.6.16", true, false, DrillSealed},
		"no etcd": {"", true, true, ""},
	} {
		v := drilling()
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Version = ParseVersion("3.6.16")
		}
		v.Self.Etcd = ParseVersion(c.etcd)
		if got := CanDrill(v, c.store, c.key); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
