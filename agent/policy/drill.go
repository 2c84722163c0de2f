// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/span"
)

// Drill is what is known of the restores that were proven: a snapshot that an etcd of its own has served.
type Drill struct {
	Every  time.Duration // how old the last one may get; 0 when none is proven by itself
	Proven bool          // there is one
	Age    time.Duration // of the last one, by wall clocks; without one, since this agent looks
	Failed *BackupFailure
}

// DrillAbility says whether a host can prove snapshots.
type DrillAbility string

// The abilities. The zero value means that it cannot.
const (
	DrillReady  DrillAbility = "ready"
	DrillSealed DrillAbility = "sealed" // but for the key to decrypt them with
)

// CanDrill gives what a host says of itself that has a store of snapshots or not, and the key to read them if one is
// needed. An etcd older than the members' may not understand their database.
func CanDrill(v View, store, key bool) DrillAbility {
	older := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return v.Self.Etcd.Major < m.Version.Major ||
			v.Self.Etcd.Major == m.Version.Major && v.Self.Etcd.Minor < m.Version.Minor
	})
	switch {
	case !store || older || !v.Self.Etcd.Known():
		return ""
	case !key:
		return DrillSealed
	}
	return DrillReady
}

// DrillNote says what is to be done about the proof of a restore. It is no step: it takes no lock, and touches no
// member.
type DrillNote struct {
	Run    bool   // now, by this host
	By     string // the name of the host that proves the next one; empty when nobody can
	Sealed bool   // nobody can, for lack of a key alone
	Due    time.Duration
	Text   string // when the next is due and whose it is, or what keeps it
	// End tells why a drill that runs on this host is ended, whoever asked for it; empty when none has to be. It takes
	// processor, memory and disk that this host's etcd is to have.
	End string
}

// drillRetry is between two tries after one that failed, unless drills are due more often.
const drillRetry = time.Hour

// noteDrill decides about the next restore, and about one that is being proven here.
func noteDrill(v View) DrillNote {
	n := nextDrill(v)
	if v.Op != nil && v.Op.Host == v.Self.ID {
		n.End = fmt.Sprintf("this host is in an operation (%s)", v.Op.Kind)
	}
	return n
}

// nextDrill decides who proves the next restore, and when: the best host without a member, so that no voter's disk pays
// for it.
func nextDrill(v View) DrillNote {
	d := v.Backup.Drill
	switch {
	case d.Every == 0:
		return DrillNote{}
	case !v.Cluster.Reachable || v.Cluster.Foreign():
		return DrillNote{Text: "nobody proves restores: the cluster cannot be reached from here"}
	case !v.Backup.Saved:
		return DrillNote{Text: "nobody proves restores: there is no snapshot yet"}
	}
	fit := v.drillers(DrillReady)
	if len(fit) == 0 && len(v.drillers(DrillSealed)) > 0 {
		return DrillNote{Sealed: true, Text: "a restore cannot be proven: snapshots are encrypted to recipients " +
			"whose key no host without a member has"}
	}
	if len(fit) == 0 {
		return DrillNote{Text: "nobody proves restores: no host without a member can; quorumctl snapshot drill does " +
			"it on any host"}
	}
	n := DrillNote{By: fit[0].Name, Due: v.drillDue()}
	if n.Due > 0 {
		n.Text = fmt.Sprintf("the next restore is proven in %s, by %s", span.Text(n.Due.Round(time.Minute)), n.By)
		return n
	}
	if keeps := v.keepsFromDrill(); keeps != "" {
		n.Text = fmt.Sprintf("the next restore is due, and %s waits: %s", n.By, keeps)
		return n
	}
	n.Text = fmt.Sprintf("the next restore is to be proven now, by %s", n.By)
	n.Run = fit[0].ID == v.Self.ID && v.Self.Mode == Manage
	return n
}

// keepsFromDrill tells what a spare may be wanted for: the best one proves restores, and it is the one that would join.
func (v View) keepsFromDrill() string {
	if v.Op != nil {
		return fmt.Sprintf("%s is in an operation", cmp.Or(v.Op.HostName, v.Op.Host))
	}
	for m := range v.Cluster.voters() {
		if !m.Live {
			return fmt.Sprintf("voter %s does not answer", m.label())
		}
	}
	return ""
}

// drillers gives the hosts without a member that have that ability and nothing else to do, best first. One on which the
// last drill failed goes behind the others: the fault may be its own.
func (v View) drillers(what DrillAbility) []Host {
	list := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool {
		busy := h.Wants != "" || v.Op != nil && v.Op.Host == h.ID
		return h.Role != RoleSpare || h.Drills != what || !h.Manage || busy || sick(h.Health)
	})
	failed := func(h Host) int {
		if f := v.Backup.Drill.Failed; f != nil && f.Host == h.Name {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(failed(a), failed(b)), cmp.Compare(known(a.P99), known(b.P99)), cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

// drillDue gives in how long the next one is due. A time that seems to come from the future counts like one that is as
// old.
func (v View) drillDue() time.Duration {
	d := v.Backup.Drill
	due := time.Duration(0)
	if d.Proven {
		due = max(0, d.Every-d.Age.Abs())
	}
	if d.Failed != nil {
		due = max(due, min(d.Every, drillRetry)-d.Failed.Age.Abs())
	}
	return due
}

// unprovenAfter is after how many intervals people are told: one that failed is tried again many times until then.
const unprovenAfter = 3

// restoreUnproven tells that no restore was proven for long, unless nobody has the key: that is told where the next one
// is, and an alarm would never end.
func restoreUnproven(v View) (string, bool) {
	d := v.Backup.Drill
	if d.Every == 0 || d.Age < unprovenAfter*d.Every || noteDrill(v).Sealed {
		return "", false
	}
	last := "no restore was ever proven"
	if d.Proven {
		last = fmt.Sprintf("no restore was proven for more than %s", span.Text(d.Age.Truncate(d.Every)))
	}
	return fmt.Sprintf("%s, and there should be one every %s; %s", last, span.Text(d.Every), noteDrill(v).Text), true
}

// restoreFailed tells that the last drill did not prove its snapshot.
func restoreFailed(v View) (string, bool) {
	f := v.Backup.Drill.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
