// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// AgainstRecovery returns why no plan may be put in force on this host, or nil. pinned is the cluster ID in its
// configuration, or empty. Package recovery checks whether the plan fits this host.
func AgainstRecovery(v View, pinned string) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes on this host", "set mode: manage and restart quorumd")
	case pinned != "":
		return conflicts("",
			"cluster.id is "+pinned+", but the recovered cluster has a different ID",
			"remove cluster.id from quorumd.yaml on every host, restart quorumd, and apply the plan again")
	}
	return nil
}

// AgainstSnapshot returns why this host cannot restore a snapshot that it must fetch, or nil. hasStore reports whether
// its configuration names a backup store.
func AgainstSnapshot(fetched, hasStore bool) *Refusal {
	if !fetched || hasStore {
		return nil
	}
	return conflicts("", "this host is to restore a snapshot, and its configuration names no backup store",
		"set backup.store.directory or backup.store.s3, restart quorumd, and apply the plan again")
}

// AgainstPlan returns why another plan may not be put in force next to this one, or nil.
func (r *Recovery) AgainstPlan(plan string) *Refusal {
	if r == nil || r.Plan == plan {
		return nil
	}
	return conflicts("", "plan "+r.Plan+" is in force here already, by "+r.By, "quorumctl recover status")
}

// AgainstGivingUp returns why the plan may not be given up, or nil. moved reports whether this host has begun to move
// its old data.
func (r *Recovery) AgainstGivingUp(moved bool) *Refusal {
	switch {
	case r == nil:
		return conflicts("", "none is in force on this host", "quorumctl recover status")
	case moved:
		return conflicts("", "this host has begun to move its old data",
			"let it finish: quorumctl recover status; the old data is kept next to the new, see QUORUM LOSS in "+
				"quorumctl(1)")
	}
	return nil
}
