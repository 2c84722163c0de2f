// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// An operator resizes the cluster by recording its new size in etcd. A larger cluster needs no operation of its own:
// spares join until there are enough voters. In a smaller cluster, surplus voters leave one after another (leave.go).

// MaxVoters is the maximum size of a cluster.
const MaxVoters = 9

// manyVoters is the largest size without a warning: every write waits for a quorum of the voters.
const manyVoters = 7

// Size is the size of the cluster that an operator has recorded in etcd.
type Size struct {
	Voters          int
	WithoutSnapshot bool          // see Target
	For             time.Duration // for how long this agent has observed that size
}

// IsSize reports whether a cluster may have that number of voters: it is odd and at most [MaxVoters].
func IsSize(voters int) bool { return voters%2 == 1 && voters >= 1 && voters <= MaxVoters }

// SizeOf returns the size in effect, given the configured one and the recorded one, which is nil if there is none. If
// the record cannot be read or has no valid size, the cluster keeps its number of voters.
func SizeOf(configured Target, recorded *Size, unreadable bool, c Cluster) Target {
	t := configured
	t.Configured = configured.Voters
	switch voters, _ := c.Counts(); {
	case unreadable || recorded != nil && !IsSize(recorded.Voters):
		if voters > 0 {
			t.Voters = voters
		}
	case recorded != nil:
		t.Voters, t.Resized, t.ResizedFor = recorded.Voters, true, recorded.For
		t.WithoutSnapshot = recorded.WithoutSnapshot
	}
	return t
}

// sizeDiffers reports whether this host's configuration has a different number of voters than the size in etcd.
func sizeDiffers(v View) (string, bool) {
	if !v.Target.Resized || v.Target.Configured == v.Target.Voters || !v.Cluster.Reachable || v.foreign() {
		return "", false
	}
	return fmt.Sprintf("cluster.voters is %d in this host's configuration, but the cluster has been resized to %d; "+
		"the configuration applies only to a new cluster", v.Target.Configured, v.Target.Voters), true
}

// AgainstResize returns why an operator may not resize the cluster to that number of voters now, or nil.
func AgainstResize(v View, voters int, withoutSnapshot bool) *Refusal {
	wrong := func(text, hint string) *Refusal { return &Refusal{Wrong, "", text, hint} }
	switch {
	case voters < 1 || voters > MaxVoters:
		return wrong(fmt.Sprintf("%d voters: the number must be between 1 and %d", voters, MaxVoters),
			"1, 3, 5 or 7 voters are usual")
	case voters%2 == 0:
		return wrong(fmt.Sprintf("%d voters tolerate only as many failures as %d", voters, voters-1),
			fmt.Sprintf("choose %d or %d", voters-1, min(voters+1, MaxVoters)))
	}
	if r := AgainstRemovals(v); r != nil { // checks the mode, the connection and a pause
		return r
	}
	if v.Recovery != nil {
		return conflicts(Recovering, "a recovery plan is in progress", "quorumctl recover status")
	}
	now, _ := v.Cluster.Counts()
	able := now
	for _, h := range v.Hosts {
		if h.Manage && !h.Learner && (h.Role == RoleSpare || h.Role == RoleStandby || h.Role == RoleJoining) {
			able++
		}
	}
	switch {
	case voters > able:
		return conflicts("", fmt.Sprintf("only %d hosts have a voter or run quorumd in mode manage, but %d are needed",
			able, voters), "install quorumd on more hosts; quorumctl status lists the hosts")
	case voters == 1 && now > 1 && !withoutSnapshot && !v.Backup.HasStore:
		return conflicts(SnapshotFirst, "one voter tolerates no failure, and no backup store is configured for a "+
			"snapshot before voters leave", "configure backup.store, or use --without-snapshot")
	}
	return nil
}

// ResizePlan returns warnings, and the steps that it takes to resize the cluster to that number of voters if nothing
// fails. There are no steps if the cluster already has that size.
func ResizePlan(v View, voters int) (steps []PlanStep, warnings []string) {
	now, _ := v.Cluster.Counts()
	v.Target.Voters, v.Target.Resized = voters, true
	if voters > manyVoters {
		warnings = append(warnings, fmt.Sprintf("every write waits for %d of %d voters", Quorum(voters), voters))
	}
	joins := candidates(v, RoleVoter, selfReady(v))
	for n := now + 1; n <= voters; n++ {
		step := PlanStep{Voters: n, Tolerance: Tolerance(n, n)}
		if at := n - now - 1; at < len(joins) {
			step = step.joins(joins[at])
		} else {
			step = step.anyJoins("no other host is ready; quorumctl explain on the hosts shows why")
		}
		steps = append(steps, step)
	}
	for n := now - 1; n >= voters; n-- {
		left := len(leavers(v))
		var step PlanStep
		step, v = PlanStep{Voters: n, Tolerance: Tolerance(n, n)}.leave(v)
		if step.WaitsFor = v.firstDoubt(); left == 0 {
			step.WaitsFor = "no voter's host runs quorumd in mode manage; quorumctl explain on the hosts shows why"
			return append(steps, step), warnings
		}
		steps = append(steps, step)
	}
	if voters == 1 && now > 1 {
		warnings = append(warnings, "one voter tolerates no failure: if its disk fails, a snapshot is all that is left")
	}
	return steps, warnings
}
