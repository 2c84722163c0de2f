// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/coreos/go-semver/semver"
)

// Version is an etcd version. The zero Version is unknown.
type Version struct{ Major, Minor, Patch int64 }

// ParseVersion parses a version such as "3.6.16". It returns the unknown version if s is not a version.
func ParseVersion(s string) Version {
	v, err := semver.NewVersion(s)
	if err != nil {
		return Version{}
	}
	return Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}
}

// Known reports whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// String returns the version as text, such as "3.6.16", or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Safe reports whether membership may be managed with this version. Before 3.5.31 and 3.6.12, a member update silently
// turns a learner into a member that can never be promoted. Older patches also lose promotions on upgrade, keep removed
// members, or renew revoked leases (etcd changelogs of 3.5 and 3.6). Every 3.7 has the fixes. An untested version is
// not known to be safe.
func (v Version) Safe() bool {
	if v.Major != 3 || !v.Tested() {
		return false
	}
	switch v.Minor {
	case 5:
		return v.Patch >= 31
	case 6:
		return v.Patch >= 12
	}
	return v.Minor > 6
}

// newestTested returns the newest minor version that quorumd is tested with. A later one may store data or answer in
// untested ways, so no host joins with it. Raise it with the versions of `make etcd-all`.
func newestTested() Version { return Version{Major: 3, Minor: 7} }

// Tested reports whether the minor version is at most the newest one that quorumd is tested with.
func (v Version) Tested() bool {
	newest := newestTested()
	return v.Major < newest.Major || v.Major == newest.Major && v.Minor <= newest.Minor
}

// mayJoin reports whether a member of this version may join a cluster with this lowest member version: it must be the
// same minor version or the next one. An older version refuses to start. A version that is newer by two can be admitted
// and then crash the leader, as 3.6 does in a 3.4 cluster, and the log entry crashes the leader again at every start.
func (v Version) mayJoin(lowest Version) bool {
	return v.Major == lowest.Major && (v.Minor == lowest.Minor || v.Minor == lowest.Minor+1)
}

// Less reports whether v is older than o.
func (v Version) Less(o Version) bool {
	if v.Major != o.Major {
		return v.Major < o.Major
	}
	if v.Minor != o.Minor {
		return v.Minor < o.Minor
	}
	return v.Patch < o.Patch
}

func versionUnknown(v View) (string, bool) {
	if !v.Self.Etcd.Known() {
		return "the version of this host's etcd is not known yet" + v.startsAnother(), true
	}
	for m := range v.Cluster.voters() {
		if m.Live && !m.Version.Known() {
			return fmt.Sprintf("the version of voter %s is not known", m.Name), true
		}
	}
	return "", false
}

func versionUnsafe(v View) (string, bool) {
	if v.Limits.AllowUnsafe {
		return "", false
	}
	return tooOld(v)
}

// tooOld reports whether this host's etcd or a voter's is too old, even if the configuration allows it.
func tooOld(v View) (string, bool) {
	if e := v.Self.Etcd; e.Known() && e.Tested() && !e.Safe() {
		return fmt.Sprintf("this host's etcd is %s%s", e, v.startsAnother()), true
	}
	for m := range v.Cluster.voters() {
		if m.Version.Known() && m.Version.Tested() && !m.Version.Safe() {
			return fmt.Sprintf("voter %s runs etcd %s", m.Name, m.Version), true
		}
	}
	return "", false
}

func versionUntested(v View) (string, bool) {
	if v.Limits.AllowUnsafe {
		return "", false
	}
	return tooNew(v)
}

// tooNew reports whether this host's etcd or a voter's is of a newer minor version than any that is tested, even if the
// configuration allows it.
func tooNew(v View) (string, bool) {
	limit := fmt.Sprintf("the newest tested version is %d.%d", newestTested().Major, newestTested().Minor)
	if e := v.Self.Etcd; e.Known() && !e.Tested() {
		return fmt.Sprintf("this host's etcd is %s; %s%s", e, limit, v.startsAnother()), true
	}
	for m := range v.Cluster.voters() {
		if m.Version.Known() && !m.Version.Tested() {
			return fmt.Sprintf("voter %s runs etcd %s; %s", m.Name, m.Version, limit), true
		}
	}
	return "", false
}

// lowest returns the lowest known version of the members.
func (c Cluster) lowest() Version {
	var low Version
	for _, m := range c.Members {
		if m.Version.Known() && (!low.Known() || m.Version.Less(low)) {
			low = m.Version
		}
	}
	return low
}

func versionIncompatible(v View) (string, bool) {
	if v.mayBeLast() {
		return "", false
	}
	return incompatibleText(v)
}

// mayBeLast reports whether this host's member is down and may be the last one with the preceding minor version, as
// during the pause of an upgrade. As long as the member is listed, etcd does not raise the cluster version, so the
// member can start. If the cluster version was raised earlier, the member's etcd exits at once.
func (v View) mayBeLast() bool {
	m, listed := v.member()
	low := v.Cluster.lowest()
	return listed && m.Name != "" && !m.Live && low.Known() && v.Self.Etcd.minor() == low.minor().before()
}

// incompatibleText reports whether this host's etcd may neither join the cluster nor start in it, apart from mayBeLast.
func incompatibleText(v View) (string, bool) {
	low := v.Cluster.lowest()
	if !low.Known() || !v.Self.Etcd.Known() || v.Self.Etcd.mayJoin(low) {
		return "", false
	}
	return fmt.Sprintf("this host's etcd is %s, but the cluster's oldest member runs %s%s", v.Self.Etcd, low,
		v.startsAnother()), true
}

// startsAnother returns a note for the reason if the unit starts a program other than etcd.binary, or an empty string.
func (v View) startsAnother() string {
	if v.Unit.Program == "" {
		return ""
	}
	return fmt.Sprintf("; quorumd checks etcd.binary, %s, but the unit starts %s: correct etcd.binary",
		v.Self.Binary, v.Unit.Program)
}

// minor returns the version without its patch.
func (v Version) minor() Version { return Version{Major: v.Major, Minor: v.Minor} }

// minorText returns the minor version as text, such as "3.6", or "unknown".
func (v Version) minorText() string {
	if !v.Known() {
		return v.String()
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// floorOf returns the oldest patch of a minor version from which etcd may be upgraded to the next one; 0 for any. Older
// patches can leave members behind that the next version removes or refuses (etcd's upgrade guides of 3.6 and 3.7).
func floorOf(minor int64) int64 {
	return map[int64]int64{5: 32, 6: 11}[minor]
}

// againstJump returns why a member may not be upgraded to a version in one go, or nil.
func againstJump(m Member, to Version) *Refusal {
	is := m.Version
	if !is.Known() || !is.minor().Less(to.minor()) {
		return nil
	}
	next := Version{Major: is.Major, Minor: is.Minor + 1}
	if next != to.minor() {
		return conflicts(VersionIncompatible, fmt.Sprintf("%s runs etcd %s, but etcd is upgraded one minor version at "+
			"a time", m.label(), is), "upgrade to "+next.minorText()+" first")
	}
	if floor := floorOf(is.Minor); is.Patch < floor {
		return conflicts(VersionUnsafe, fmt.Sprintf("%s runs etcd %s, but only %s.%d and newer may be upgraded to %s",
			m.label(), is, is.minorText(), floor, to.minorText()),
			"upgrade to the newest patch of "+is.minorText()+" first")
	}
	return nil
}
