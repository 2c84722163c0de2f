// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// bootstrap makes a new cluster of one member. It happens once, at an operator's word; a cluster
// that answers or has ever answered, or a host that has ever belonged to one, ends the request.
func bootstrap(v View) (Decision, bool) {
	if !v.Bootstrap.Requested {
		return Decision{}, false
	}
	if v.Cluster.Reachable {
		outcome := ClusterExists
		if roleOf(v) == RoleVoter {
			outcome = Joined
		}
		return do(Step{Kind: StepFinishBootstrap, Outcome: outcome}), true
	}
	if v.Cluster.Listed {
		return silent(v), true // a cluster has just answered, whatever else is wrong
	}
	if v.Bootstrap.Done {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: "this host has belonged to a cluster before",
		}), true
	}
	if v.Data.State == DataMember { // made by us before a crash
		if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionUnsafe); holds {
			return Decision{Reasons: []Reason{r}}, true
		}
		// one that has crashed is failed; after a reboot it has not run yet
		if v.Unit.State == UnitInactive && v.Unit.Ran {
			return stopped(v), true
		}
		return bringUp(v), true
	}
	if v.Bootstrap.Seen != 0 {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: fmt.Sprintf("this host has seen cluster %x", v.Bootstrap.Seen),
		}), true
	}
	if v.Data.State == DataRemains {
		return wait(DataUnusable,
			"etcd has ended in its first start, before it was a member: see its log, and move what it left away"), true
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoVersionUnknown, vetoVersionUnsafe, vetoHealthUnknown,
		vetoNotQualified, vetoHealthBad, vetoSpaceLow, vetoUnitUnusable, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}, true
	}
	if !v.Unit.EnvReady && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
		return do(Step{Kind: StepWriteEnv, New: true}), true
	}
	return bringUp(v), true
}

// startLater waits between two starts of etcd. If the last one was refused, that is the reason, and not how etcd ended
// before.
func startLater(v View, format string, args ...any) Decision {
	if v.Failed.Kind == StepStartUnit {
		return wait(StepFailed, "%s", v.Failed.Text)
	}
	return wait(Starting, format, args...)
}

// bringUp starts etcd and waits for it.
func bringUp(v View) Decision {
	switch v.Unit.State {
	case UnitInactive, UnitFailed:
		if v.Unit.SinceStart < v.Limits.StartRetry {
			return startLater(v, "etcd has not stayed up; it is started again soon: %s", v.Unit.Detail)
		}
		return do(Step{Kind: StepStartUnit})
	case UnitUnknown, UnitMissing:
		return because(v, vetoUnitUnusable)
	}
	return wait(Starting, "etcd is %s", v.Unit.State)
}
