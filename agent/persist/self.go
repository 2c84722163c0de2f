// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"context"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/round"
)

// healthyPeriodOf returns the current healthy period of this host, or the zero value.
func healthyPeriodOf(bootID string, r *round.Round) hoststate.HealthyPeriod {
	t := r.View.Ejections
	if t.HealthyFor == 0 {
		return hoststate.HealthyPeriod{}
	}
	return hoststate.HealthyPeriod{
		BootID: bootID, Member: hoststate.ID(t.Member), Began: r.At - t.HealthyFor, Seen: r.At,
	}
}

// domainsOf returns the known failure domains of the members' hosts, by member ID.
func domainsOf(r *round.Round) map[uint64]string {
	of := map[uint64]string{}
	for _, m := range r.View.Cluster.Members {
		if m.Domain != "" {
			of[m.ID] = m.Domain
		}
	}
	return of
}

// learnersOf returns the limits of the permanent learners to record, by member ID.
func learnersOf(r *round.Round) map[uint64]int {
	of := map[uint64]int{}
	for _, m := range r.View.Cluster.Members {
		if n := m.LearnerNote(); n != 0 {
			of[m.ID] = n
		}
	}
	return of
}

// noteSelf records the cluster, this host's membership and the other facts that the round has decided to keep.
func (k *Persister) noteSelf(ctx context.Context, r *round.Round) {
	note, id := r.Decision.Notes.Self, r.View.Cluster.ID
	if note.ClusterAnswered {
		k.note(ctx, &k.lastCluster, "cluster", "cannot save the ID of the cluster",
			func(context.Context) error { return k.files.SetLastCluster(id, r.Wall) })
	}
	if note.Member {
		k.note(ctx, &k.member, "membership", "cannot save the member ID of this host",
			func(context.Context) error { return k.files.SetMembership(id, note.MemberID) })
	}
	if note.Lost != 0 {
		k.note(ctx, &k.lost, "lost member", "cannot save that this member's data is gone",
			func(context.Context) error { return k.files.SetLost(note.Lost) })
	}
	if note.Mount != "" {
		k.note(ctx, &k.mount, "mount", "cannot save the mount point of the member's data",
			func(context.Context) error { return k.files.SetMount(note.Mount) })
	}
	if note.Domains {
		domains := domainsOf(r)
		k.note(ctx, &k.domains, "failure domains", "cannot save the members' failure domains",
			func(context.Context) error { return k.files.NoteDomains(domains) })
	}
	if note.Learners {
		learners := learnersOf(r)
		k.note(ctx, &k.learners, "learners", "cannot save which learners are permanent",
			func(context.Context) error { return k.files.NoteLearners(learners) })
	}
	if note.Clean {
		period := healthyPeriodOf(k.opt.BootID, r)
		k.note(ctx, &k.healthyPeriod, "healthy period", "cannot save how long this host has been healthy",
			func(context.Context) error { return k.files.NoteHealthyPeriod(period) })
	}
	if note.Standby != 0 {
		k.note(ctx, &k.standby, "standby", "cannot save that this host is a standby",
			func(context.Context) error { return k.files.SetStandby(note.Standby) })
	}
}
