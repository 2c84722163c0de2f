// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// etcd also raises the cluster version when the last member with the older minor version is removed, whatever removes
// it. Until an operator has decided about an unfinished upgrade, that member therefore stays: a voter does not leave
// for a resize or a retirement, and no host replaces it, even if it is dead. The cluster can be rolled back once that
// member returns. quorumctl upgrade resume accepts the new version, and quorumctl upgrade abort ends the upgrade as it
// is: after either command, the member can be removed.

// lastOfUpgrade returns why a member is not removed until an operator has decided about an upgrade or a rollback is
// done; ok is false if it may be removed. joined is the version of the host that will have joined before the removal,
// unknown if none will. Another member whose version is unknown counts as running the new one.
func lastOfUpgrade(v View, m Member, joined Version) (why string, ok bool) {
	r := v.Rollout
	if r == nil || r.Over || r.Downgrade || v.foreign() {
		return "", false
	}
	to := ParseVersion(r.Upgrade).minor()
	forward := r.Raises && (!r.Runs || r.Hold)
	back := false
	for _, other := range v.Cluster.Members {
		back = back || to.Less(other.Version.minor())
	}
	if !to.Known() || !forward && !back {
		return "", false
	}
	newer := func(is Version) bool { return to.Less(is.minor()) || forward && !back && is.minor() == to }
	if m.Version.Known() && newer(m.Version) || joined.Known() && !newer(joined) {
		return "", false
	}
	for _, other := range v.Cluster.Members {
		if other.ID != m.ID && other.Version.Known() && !newer(other.Version) {
			return "", false
		}
	}
	until, old := "the upgrade is resumed or aborted", to.before().minorText()
	if back {
		until, old = "the rollback is done or aborted", to.minorText()
	}
	return fmt.Sprintf("%s stays until %s: no other member is known to run etcd %s, and without such a "+
		"member none can be rolled back", m.label(), until, old), true
}

// before returns the preceding minor version.
func (v Version) before() Version { return Version{Major: v.Major, Minor: v.Minor - 1} }

// lastLeaves reports whether this host's member may not leave because of an upgrade.
func lastLeaves(v View) (string, bool) {
	m, listed := v.member()
	if !listed {
		return "", false
	}
	return lastOfUpgrade(v, m, Version{})
}

// lastRemoved reports whether the member that an operator wants removed has to stay because of an upgrade.
func lastRemoved(v View) (string, bool) {
	m, listed := v.memberByID(v.Removal.MemberID)
	if !listed {
		return "", false
	}
	return lastOfUpgrade(v, m, Version{})
}

// lastReplaced reports whether the voter that this host would replace or remove has to stay because of an upgrade.
func lastReplaced(v View) (string, bool) {
	who, found := v.replaced()
	if !found {
		return "", false
	}
	joined := Version{}
	if _, listed := v.member(); !listed && who.Live { // this host joins first
		joined = v.Self.Etcd
	}
	return lastOfUpgrade(v, who, joined)
}
