// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
)

func TestAGivenUpMemberIsRecordedUntilTheHostHasAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *State {
		f, err := Open(HostFiles{}, dir+"/state", dir+"/run", nil)
		must(t, err)
		return f
	}
	f := open()
	must(t, f.SetMembership(7, 3))
	must(t, f.SetStandby(3))
	must(t, f.SetMount("/var/lib/etcd"))
	must(t, f.SetLost(3))
	n := open().Noted("", 0, 0)
	if n.Cluster != 7 || n.Member != 3 || n.Standby != 3 || n.Lost != 3 || n.Mount != "/var/lib/etcd" {
		t.Errorf("recorded: %+v", n)
	}
	must(t, f.SetMembership(7, 4))
	n = open().Noted("", 0, 0)
	if n.Member != 4 || n.Lost != 0 || n.Standby != 3 || n.Mount != "/var/lib/etcd" {
		t.Errorf("recorded for the new member: %+v", n)
	}
}
