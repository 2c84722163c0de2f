//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestAHostWhoseDiskIsReplacedInMaintenanceServesAgainUnattended removes the file system with etcd's data from a host
// in maintenance. The host waits until a different file system is mounted in its place; if that is empty, the host
// loses its member. The standby then becomes a voter, the spare becomes the standby, and the host becomes the
// spare, unless the host returns sooner.
func TestAHostWhoseDiskIsReplacedInMaintenanceServesAgainUnattended(t *testing.T) {
	f := formedFleetRunning(t)
	h := f.follower(nil)
	before := f.memberID(h)
	t.Logf("quorumctl maintenance on:\n%s",
		f.shell(h, "quorumctl maintenance on --reason 'new disk in slot 2' --wait=2m"))
	f.checkDown(h)
	f.shell(h, "umount --lazy /var/lib/etcd")
	f.shell(h, "quorumctl maintenance off --no-wait")
	f.eventually(h.Name+" reports that the file system is not mounted", func() bool {
		return f.hasReason(h, "DATA_UNKNOWN")
	})
	f.never(5*time.Second, "a member whose disk is not mounted is given up", func() bool {
		return f.memberID(h) != before || !f.hasReason(h, "DATA_UNKNOWN")
	})
	f.shell(h, "mount -t tmpfs -o size=1g,mode=0700,uid=$(id -u etcd),gid=$(id -g etcd) new-disk /var/lib/etcd")
	began := time.Now()
	f.eventually("the operation of "+h.Name+" has ended with MEMBER_LOST", func() bool {
		s, ok := f.status(h)
		return ok && s.Maintenance == nil && s.LastMaintenance != nil && s.LastMaintenance.Code == "MEMBER_LOST"
	})
	f.within(3*bound, "the target is met, and the host is a member or the spare", func() bool {
		id := f.memberID(h)
		if !f.has(3, 1) || !f.isIdle() || id == before {
			return false
		}
		if id == 0 {
			return f.is(h, policy.RoleSpare) && !f.hasReason(h, "NOT_QUALIFIED")
		}
		return f.is(h, policy.RoleVoter) || f.is(h, policy.RoleStandby)
	})
	t.Logf("full strength %s after the new disk was mounted", time.Since(began).Round(100*time.Millisecond))
	f.verify(3, 1)
}

// memberID returns the member ID of a host in etcd's member list; 0 if it has none.
func (f *fleet) memberID(h *lab.Host) uint64 {
	for _, m := range f.members() {
		if m.Name == h.Name {
			return m.ID
		}
	}
	return 0
}
