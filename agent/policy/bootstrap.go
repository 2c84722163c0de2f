// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// bootstrap creates a new single-member cluster. It happens once, on an operator's request; a cluster that answers or
// has ever answered, or a host that has ever belonged to one, ends the request.
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
		return waitForCluster(v), true // a cluster has just answered, whatever else is wrong
	}
	if v.Bootstrap.Done {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: "this host has belonged to a cluster before",
		}), true
	}
	if v.Data.State == DataMember { // created by quorumd before a crash
		if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionUnsafe); holds {
			return Decision{Reasons: []Reason{r}}, true
		}
		// after a crash it is failed; after a reboot it has not run yet
		if v.Unit.State == UnitInactive && v.Unit.Ran {
			return stopped(v), true
		}
		return bringUp(v), true
	}
	if v.Bootstrap.LastCluster != 0 {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: fmt.Sprintf("this host has seen cluster %x", v.Bootstrap.LastCluster),
		}), true
	}
	if v.Data.State == DataRemains {
		return wait(DataUnusable,
			"etcd exited during its first start, before it became a member: check its log, and move its leftover "+
				"data away"), true
	}
	if d, waits := askListed(v); waits {
		return d, true
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoVersionUnknown, vetoVersionUnsafe, vetoVersionUntested,
		vetoHealthUnknown,
		vetoNotQualified, vetoHealthBad, vetoSpaceLow, vetoUnitUnusable, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}, true
	}
	if !v.Unit.EnvReady && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
		return do(Step{Kind: StepWriteEnv}), true
	}
	return bringUp(v), true
}

// AgainstBootstrap returns why no new cluster may be created on this host on request, or nil: there is some sign of a
// cluster, and "new" happens once. Its texts name etcd's data directory, and the file that records which cluster this
// host has seen.
func AgainstBootstrap(v View, dataDir, seenPath string) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes", "set mode: manage and restart quorumd")
	case v.Cluster.Listed:
		return conflicts(ClusterExists, "a cluster answers already",
			"no action needed: this host joins it; see quorumctl explain")
	case v.Bootstrap.Done:
		return conflicts(ClusterExists, fmt.Sprintf("this host has belonged to cluster %x", v.Cluster.ExpectedID),
			"bring that cluster back; quorumd creates no new one on an empty disk")
	case v.Bootstrap.LastCluster != 0:
		return conflicts(ClusterExists,
			fmt.Sprintf("this host has seen cluster %x, which does not answer now", v.Bootstrap.LastCluster),
			"bring that cluster back, and this host joins it; only if it is gone for good, remove "+seenPath+
				" and restart quorumd")
	case v.BootstrapAttempt.Attempt != "" && v.BootstrapAttempt.First != v.Self.Name:
		return conflicts(ClusterExists,
			"this host is committed to the attempt of "+v.BootstrapAttempt.First+" to create the cluster",
			"quorumctl explain shows what the attempt waits for; this host joins that cluster")
	case v.BootstrapAttempt.elsewhere(v.Self.Name) != "":
		return conflicts(ClusterExists, v.BootstrapAttempt.elsewhere(v.Self.Name),
			"no action needed: this host joins that cluster; see quorumctl explain")
	case v.Data.State == DataUnknown:
		return &Refusal{
			NotNow, Starting, v.Data.unread(),
			"try again in a few seconds",
		}
	case v.Data.State != DataEmpty:
		if text, stray := strayDefault(v); stray {
			return conflicts(DefaultCluster, text,
				"if nothing was stored in it, stop etcd and move member in "+dataDir+" to another name")
		}
		return conflicts(ClusterExists, "there is data in "+dataDir,
			"start etcd on it, or move it away if it is not needed")
	}
	return nil
}

// startLater waits between two starts of etcd. If the last one was refused, that is the reason, not the earlier exit of
// etcd.
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
			return startLater(v, "etcd exited; it is restarted soon: %s", v.Unit.Detail)
		}
		return do(Step{Kind: StepStartUnit})
	case UnitUnknown, UnitMissing:
		return blockedBy(v, vetoUnitUnusable)
	}
	return wait(Starting, "etcd is %s", v.Unit.State)
}
